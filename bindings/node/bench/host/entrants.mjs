/**
 * The hosts of a row, as the bench sees them: every contender runs in a Node.js process of its own.
 *
 * A peer that forks leaves every page of its process to be copied at the next write, and whoever else were measured in that process
 * would pay for it, as for its garbage.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('program.mjs', import.meta.url))

/** How long a host may take to end what it started before it is killed, in milliseconds. */
const END_BOUND = 30_000

/** How long a host may take to start, and for one sample, in milliseconds: what takes longer has come to a halt. */
const ANSWER_BOUND = 120_000

/** One running host. */
class Host {
  constructor(call) {
    this.process = fork(PROGRAM, [JSON.stringify(call)], { execArgv: ['--expose-gc'], serialization: 'json' })
  }

  async answer() {
    let listen
    let bound
    try {
      const answer = await new Promise((resolve, reject) => {
        listen = {
          message: resolve,
          exit: (code, signal) => reject(new Error(`its host ended with ${signal ?? code} before it answered`)),
        }
        for (const [event, listener] of Object.entries(listen)) this.process.once(event, listener)
        bound = setTimeout(reject, ANSWER_BOUND, new Error(`its host did not answer within ${ANSWER_BOUND} ms`))
      })
      if (answer.error !== undefined) throw new Error(answer.error)
      return answer
    } finally {
      clearTimeout(bound)
      for (const [event, listener] of Object.entries(listen)) this.process.off(event, listener)
    }
  }

  ask(question) {
    const answer = this.answer()
    // Where the host is gone, its exit is the answer.
    this.process.send(question, () => {})
    return answer
  }

  /** Lets the host end what it started, and waits until it is gone. */
  async close() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const exit = once(this.process, 'exit')
    const bound = setTimeout(() => this.process.kill('SIGKILL'), END_BOUND)
    if (this.process.connected) this.process.disconnect()
    await exit
    clearTimeout(bound)
  }
}

/** A contender of a row. Where the row asks for it, each sample is taken in a new host. */
class Entrant {
  constructor(row, parameters, { contender, ownership, memory }) {
    this.contender = contender
    this.ownership = ownership
    this.memory = memory
    this.isPeer = contender !== 'dsh-subprocess'
    this.tier = null
    this.fresh = row.hosts === 'fresh'
    this.call = { row: row.name, contender, ownership, memory, parameters }
  }

  get name() {
    const details = [this.tier ?? this.ownership, this.memory > 0 ? `${this.memory / 2 ** 30} GiB` : undefined]
    const told = details.filter((detail) => detail !== undefined)
    return told.length === 0 ? this.contender : `${this.contender} (${told.join(', ')})`
  }

  async open() {
    const host = new Host(this.call)
    try {
      const { tier } = await host.answer()
      this.tier = tier
    } catch (error) {
      await host.close()
      throw error
    }
    return host
  }

  async sample() {
    if (!this.fresh) {
      this.host ??= await this.open()
      return (await this.host.ask('sample')).sample
    }
    const host = await this.open()
    try {
      return (await host.ask('sample')).sample
    } finally {
      await host.close()
    }
  }

  async close() {
    await this.host?.close()
  }
}

/**
 * Makes the entrants of a row: every contender, this project once per mechanism, in hosts of every size that the row asks for.
 *
 * @param {object} row
 * @param {object} parameters what the row prepared for its hosts
 * @param {string[]} ownership the mechanisms of this project
 */
export function entrantsOf(row, parameters, ownership) {
  return row.contenders
    .flatMap((contender) =>
      contender === 'dsh-subprocess' ? ownership.map((one) => ({ contender, ownership: one })) : [{ contender }],
    )
    .flatMap((who) => row.memories.map((memory) => new Entrant(row, parameters, { ...who, memory })))
}
