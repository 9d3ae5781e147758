/** How the peers keep the end of a stream: with whole chunks, since to cut each one would be slower. */

/** What every contender retains of each stream. */
export const RETAINED = 64 * 1024

/** The chunks with the last {@link RETAINED} bytes, and how many bytes there were in all. */
export class Tail {
  #chunks = []
  #held = 0
  total = 0

  push(chunk) {
    this.#chunks.push(chunk)
    this.#held += chunk.length
    this.total += chunk.length
    while (this.#held - this.#chunks[0].length >= RETAINED) this.#held -= this.#chunks.shift().length
  }

  /** What was kept, for a person to read. */
  text() {
    return Buffer.concat(this.#chunks).toString().trim()
  }
}
