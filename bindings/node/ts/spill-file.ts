/**
 * The file with the whole of a stream whose window is too small for it: complete, or withdrawn.
 *
 * It is written in the call that brings the bytes. Whatever goes wrong with it costs the file alone: nothing is thrown.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

import { madeSpillDirectory, ownSpillDirectory } from './spill-directory.js'
import type { SubprocessSpill } from './types.js'

/** Numbers the files of this process. */
let count = 0

interface OpenFile {
  readonly fd: number
  /** Which file the descriptor is, for as long as it is known to be open. */
  readonly identity: string
}

/** The spill of one stream. */
export class SpillFile {
  private file: OpenFile | undefined
  private path: string | undefined
  private bytes = 0
  private withdrawn: string | undefined

  /** Without a directory the file is made in one of this process's own. `report` is called once where the file fails, and may throw. */
  constructor(
    private readonly maxBytes: number,
    private readonly label: string,
    private readonly directory: string | undefined,
    private readonly report: ((reason: Error) => void) | undefined,
  ) {}

  /** What became of it. */
  get state(): SubprocessSpill {
    if (this.withdrawn !== undefined) return { state: 'withdrawn', reason: this.withdrawn }
    if (this.path === undefined) return { state: 'none' }
    return { state: 'available', path: this.path, bytes: this.bytes }
  }

  /**
   * Takes a chunk of a stream that is larger than its window, and has `total` bytes with the chunk. What came before the first such
   * chunk is asked for with `earlier`.
   */
  append(chunk: Uint8Array, total: number, earlier: () => Uint8Array): void {
    if (this.withdrawn !== undefined) return
    if (total > this.maxBytes) {
      this.withdraw(`the stream is longer than ${this.maxBytes} bytes`)
      return
    }
    try {
      if (this.file === undefined) {
        this.file = this.created()
        this.write(this.file, earlier())
      }
      this.write(this.file, chunk)
    } catch (error) {
      this.fail(error as Error)
    }
  }

  /** Ends the file, as often as it is called: one whose end fails is withdrawn. */
  seal(): void {
    try {
      this.close()
    } catch (error) {
      if (this.withdrawn === undefined) this.fail(error as Error)
    }
  }

  private created(): OpenFile {
    count += 1
    const name = `dsh-subprocess-${process.pid}-${count}-${randomBytes(6).toString('hex')}-${this.label}.log`
    const directory = this.directory === undefined ? ownSpillDirectory() : madeSpillDirectory(this.directory)
    const path = join(directory, name)
    const fd = openSync(path, 'wx', 0o600)
    // Only now is it a file of ours, that may be removed.
    this.path = path
    return { fd, identity: identity(fd) }
  }

  private write({ fd }: OpenFile, bytes: Uint8Array): void {
    for (let written = 0; written < bytes.byteLength;) {
      const more = writeSync(fd, bytes, written, bytes.byteLength - written)
      if (more === 0) throw new Error('the file takes no more bytes')
      written += more
      this.bytes += more
    }
  }

  /**
   * A close that failed is tried again by a later seal. The system may have closed the descriptor all the same, and its number may be
   * another file's by then: it is closed only while it is ours.
   */
  private close(): void {
    if (this.file === undefined) return
    const { fd, identity: ours } = this.file
    if (identity(fd) === ours) closeSync(fd)
    this.file = undefined
  }

  private withdraw(reason: string): void {
    this.withdrawn = reason
    try {
      this.close()
    } catch {
      // The next seal tries again.
    }
    if (this.path === undefined) return
    try {
      unlinkSync(this.path)
    } catch {
      // It is not told to anybody any more.
    }
  }

  private fail(error: Error): void {
    this.withdraw(error.message)
    try {
      this.report?.(error)
    } catch {
      // Whoever reports must not stop the stream.
    }
  }
}

/** A descriptor that is closed has none. */
function identity(fd: number): string {
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return 'closed'
  }
}
