/**
 * Reads a collected stream by offset.
 *
 * @module
 */
import { answered, subprocessError } from './errors.js'
import type { NativeRead, NativeReader } from './native.js'
import type {
  SubprocessBytesRead,
  SubprocessOutputRead,
  SubprocessOutputReader,
  SubprocessSnapshot,
  SubprocessSpill,
} from './types.js'

/** The reader of one stream. */
export class OutputReader implements SubprocessOutputReader {
  constructor(private readonly native: NativeReader) {}

  readFrom(offset: number): SubprocessOutputRead {
    const { text, nextOffset, gap, spillPath } = this.text(this.clamped(offset))
    return { text, nextOffset, lossy: gap > 0, ...(spillPath != null && { spillPath }) }
  }

  readBytes(offset: number): SubprocessBytesRead {
    return this.native.readBytes(this.clamped(offset))
  }

  snapshot(): SubprocessSnapshot {
    return this.native.snapshot()
  }

  changed(offset: number): Promise<void> {
    // Not clamped to what is there: an offset that the stream has not reached is waited for.
    return answered(() => this.native.changed(offset > 0 ? Math.min(Math.floor(offset), Number.MAX_SAFE_INTEGER) : 0))
  }

  get total(): number {
    return this.native.total()
  }

  get sealed(): boolean {
    return this.native.sealed()
  }

  get spill(): SubprocessSpill {
    const { state, path = '', bytes = 0, reason = '' } = this.native.spill()
    switch (state) {
      case 'available':
        return { state, path, bytes }
      case 'withdrawn':
        return { state, reason }
      default:
        return { state: 'none' }
    }
  }

  private text(offset: number): NativeRead {
    try {
      return this.native.readText(offset)
    } catch (error) {
      throw subprocessError(error)
    }
  }

  private clamped(offset: number): number {
    // NaN is above nothing.
    return offset > 0 ? Math.min(Math.floor(offset), this.native.total()) : 0
  }
}
