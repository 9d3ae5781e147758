/**
 * The raw streams of a handle: Node.js's own streams over descriptors, made when they are first asked for.
 *
 * Until then a pipe is the addon's, so nothing is read that nobody wants, and nothing is lost.
 *
 * @module
 */
import { closeSync } from 'node:fs'
import { Socket } from 'node:net'
import { type Duplex, Readable, Writable } from 'node:stream'

import type { NativeProcess } from './native.js'

/** What the addon answers where there is no descriptor. */
const NONE = -1

/** Which streams are raw, and how long the end waits for them. */
export interface RawModes {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly control: boolean
  readonly drainMs: number
}

/** The raw streams of one tree. */
export class RawStreams {
  private input: Writable | undefined
  private output: Readable | undefined
  private errorOutput: Readable | undefined
  private duplex: Duplex | undefined
  private exitedAt: number | undefined
  private drain: NodeJS.Timeout | undefined
  private referenced = true
  private treeGone = false

  constructor(
    private readonly native: NativeProcess,
    private readonly modes: RawModes,
  ) {}

  get stdin(): Writable | undefined {
    if (!this.modes.stdin) return undefined
    return (this.input ??= this.kept(writable(this.native.takeStdin())))
  }

  get stdout(): Readable | undefined {
    if (!this.modes.stdout) return undefined
    return (this.output ??= this.readable(this.native.takeStdout()))
  }

  get stderr(): Readable | undefined {
    if (!this.modes.stderr) return undefined
    return (this.errorOutput ??= this.readable(this.native.takeStderr()))
  }

  get control(): Duplex | undefined {
    if (!this.modes.control) return undefined
    return (this.duplex ??= this.kept(control(this.native.takeControl())))
  }

  /**
   * Resolves when the outputs that somebody reads have closed, so that whoever waits for the end has read all of it; at the latest
   * when the drain is over, counted from the target's exit. An output that nobody reads is not waited for.
   */
  async drained(): Promise<void> {
    const open = [this.output, this.errorOutput].filter((stream) => stream !== undefined).filter(isBeingRead)
    const left = (this.exitedAt ?? performance.now()) + this.modes.drainMs - performance.now()
    if (open.length === 0 || left <= 0) return
    await new Promise<void>((resolve) => {
      let closing = open.length
      const onClose = (): void => {
        closing -= 1
        if (closing === 0) finish()
      }
      const finish = (): void => {
        clearTimeout(this.drain)
        this.drain = undefined
        for (const stream of open) stream.off('close', onClose)
        resolve()
      }
      this.drain = setTimeout(finish, left)
      if (!this.referenced) this.drain.unref()
      for (const stream of open) stream.on('close', onClose)
    })
  }

  /** The tree is gone: what it would have read goes nowhere. */
  treeExited(): void {
    this.treeGone = true
    if (this.input === undefined && this.modes.stdin) close(this.native.takeStdin())
    // With bytes under way it ends by itself, and whoever wrote them is told: the pipe has no reader any more.
    if (this.input?.writableLength === 0) this.input.destroy()
    // What the tree has said is still there to be read; its end follows.
    if (this.duplex === undefined && this.modes.control) this.native.closeControlIfEmpty()
    this.duplex?.end()
  }

  /** The runtime is disposed of. Outputs are left to their consumer. */
  dispose(): void {
    this.input?.destroy()
    if (this.duplex === undefined && this.modes.control) close(this.native.takeControl())
    // With nobody at the other end it ends by itself, behind what its consumer has yet to read.
    if (this.duplex !== undefined && !(this.treeGone && isBeingRead(this.duplex))) this.duplex.destroy()
  }

  /** Sets whether the streams keep the event loop alive. */
  setReferenced(referenced: boolean): void {
    this.referenced = referenced
    for (const stream of [this.input, this.output, this.errorOutput, this.duplex]) refer(stream, referenced)
    if (referenced) this.drain?.ref()
    else this.drain?.unref()
  }

  private readable(fd: number): Readable {
    // For the drain, which begins at the exit; without a stream nobody needs to know.
    const exited = (): void => {
      this.exitedAt ??= performance.now()
    }
    this.native.exited().then(exited, exited)
    if (fd === NONE)
      return new Readable({
        read() {
          this.push(null)
        },
      })
    return this.kept(new Socket({ fd, readable: true, writable: false }))
  }

  private kept<S extends Readable | Writable>(stream: S): S {
    if (!this.referenced) refer(stream, false)
    if (this.treeGone) queueMicrotask(() => this.treeExited())
    return stream
  }
}

function close(fd: number): void {
  if (fd !== NONE) closeSync(fd)
}

/** Whether somebody reads a stream, or began to and paused. */
function isBeingRead(stream: Readable): boolean {
  return !stream.closed && stream.readableFlowing !== null
}

function writable(fd: number): Writable {
  return silent(
    fd === NONE
      ? destroyed(new Writable({ write: (_chunk, _encoding, done) => done() }))
      : new Socket({ fd, readable: false, writable: true }),
  )
}

function control(fd: number): Duplex {
  if (fd === NONE) return silent(destroyed(new Socket({ allowHalfOpen: true })))
  return silent(new Socket({ fd, readable: true, writable: true, allowHalfOpen: true }))
}

function destroyed<S extends Readable | Writable>(stream: S): S {
  stream.destroy()
  return stream
}

/** A failed write reaches whoever listens, and the callback of the write. It does not end a host where nobody does. */
function silent<S extends Writable>(stream: S): S {
  stream.on('error', () => {})
  return stream
}

function refer(stream: Readable | Writable | undefined, referenced: boolean): void {
  if (!(stream instanceof Socket)) return
  if (referenced) stream.ref()
  else stream.unref()
}
