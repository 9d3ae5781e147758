/**
 * The bounded window of a stream that the caller has the bytes of.
 *
 * @module
 */
import { types } from 'node:util'

import { addon, type NativeCollector } from './native.js'
import { OutputReader } from './reader.js'
import { checkBytes, shown } from './checks.js'
import { SpillFile } from './spill-file.js'
import type {
  CollectedOutput,
  SubprocessBytesRead,
  SubprocessOutputRead,
  SubprocessOutputReader,
  SubprocessSnapshot,
  SubprocessSpill,
} from './types.js'

/**
 * Collects a stream whose bytes come from elsewhere, as the runtime collects those of its trees: the last `maxBytes` bytes exactly,
 * however they were chunked, and the whole stream in a file where one is asked for.
 *
 * The file is made when the stream first exceeds the window, with all that came before, and written in `push`. It is readable by its
 * owner alone. A stream of more than `maxSpillBytes` has none. A file that cannot be made, written or closed is removed and no longer
 * told of; the window stays, and nothing is thrown. What is complete is the caller's to remove.
 *
 * @example
 * ```ts
 * import { OutputCollector } from 'dsh-subprocess'
 *
 * const collector = new OutputCollector(8, undefined, 'log')
 * collector.push(Buffer.from('one two '))
 * const { nextOffset } = collector.readFrom(0)
 * collector.push(Buffer.from('three'))
 * console.log(collector.readFrom(nextOffset).text) // three
 * console.log(collector.finalize()) // { text: 'wo three', truncated: true }
 * ```
 */
export class OutputCollector implements SubprocessOutputReader {
  private readonly window: NativeCollector
  private readonly reader: OutputReader
  private readonly file: SpillFile | undefined
  private pushed = 0
  private ended = false

  /**
   * Makes an empty collector.
   *
   * `maxBytes` is a safe integer, 0 or more; `maxSpillBytes` one above 0, or `undefined` for no file. The label becomes a part of the
   * file's name: letters, digits, `.`, `_` and `-`. `spillDir` is made where it is missing; without it the files of this thread are
   * in a directory of their own below the system's temporary one. `onSpillFailure` is called at most once; what it throws is ignored.
   */
  constructor(
    private readonly maxBytes: number,
    maxSpillBytes: number | undefined,
    label: string,
    spillDir?: string,
    onSpillFailure?: (reason: Error) => void,
  ) {
    checkBytes('maxBytes', maxBytes, 0)
    if (maxSpillBytes !== undefined) checkBytes('maxSpillBytes', maxSpillBytes, 1)
    if (typeof label !== 'string' || !/^[\w.-]+$/.test(label)) {
      throw new TypeError(`label must be letters, digits, '.', '_' and '-', not ${shown(label)}`)
    }
    this.window = new (addon().Collector)(maxBytes, 0)
    this.reader = new OutputReader(this.window.reader())
    if (maxSpillBytes !== undefined) this.file = new SpillFile(maxSpillBytes, label, spillDir, onSpillFailure)
  }

  /** Takes the next bytes of the stream. After {@link seal} it takes none. */
  push(chunk: Uint8Array): void {
    if (!types.isUint8Array(chunk)) throw new TypeError(`a chunk must be a Uint8Array, not ${shown(chunk)}`)
    if (this.ended) return
    this.pushed += chunk.byteLength
    if (this.pushed > this.maxBytes) this.file?.append(chunk, this.pushed, () => this.window.tail())
    this.window.push(chunk)
  }

  /** Ends the stream and its file. Another call does nothing, but to close a file that could not be closed. */
  seal(): void {
    this.ended = true
    this.file?.seal()
    this.window.seal()
  }

  /** Ends the stream, and returns all that is retained. */
  finalize(): CollectedOutput {
    this.seal()
    const { text, lossy, spillPath } = this.readFrom(0)
    return { text, truncated: lossy, ...(spillPath !== undefined && { spillPath }) }
  }

  readFrom(offset: number): SubprocessOutputRead {
    const read = this.reader.readFrom(offset)
    const { spill } = this
    return spill.state === 'available' ? { ...read, spillPath: spill.path } : read
  }

  readBytes(offset: number): SubprocessBytesRead {
    return this.reader.readBytes(offset)
  }

  snapshot(): SubprocessSnapshot {
    return this.reader.snapshot()
  }

  changed(offset: number): Promise<void> {
    return this.reader.changed(offset)
  }

  get total(): number {
    return this.reader.total
  }

  get sealed(): boolean {
    return this.reader.sealed
  }

  get spill(): SubprocessSpill {
    return this.file?.state ?? { state: 'none' }
  }
}
