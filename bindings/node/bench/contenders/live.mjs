/** The children of a peer that have not ended: it does not end them with its host, so the bench has to. */
export class Live {
  #children = new Set()

  add(child) {
    this.#children.add(child)
    const forget = () => this.#children.delete(child)
    child.end.then(forget, forget)
    return child
  }

  /** Kills the group of each. A group outlives its leader, and one with nobody left is no error. */
  kill() {
    for (const child of this.#children) {
      try {
        child.kill()
      } catch (error) {
        if (error.code !== 'ESRCH') throw error
      }
    }
  }
}
