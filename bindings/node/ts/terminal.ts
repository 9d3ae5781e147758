/**
 * The handle of a tree on a terminal.
 *
 * @module
 */
import { Readable } from 'node:stream'
import { types } from 'node:util'

import { answered, contained, isNative, spawnFailure, subprocessError } from './errors.js'
import type { NativeTerminal, NativeTerminalSpec } from './native.js'
import { publicOutcome } from './outcome.js'
import type { Recording } from './recording.js'
import { checkSize } from './checks.js'
import { Tree } from './tree.js'
import type {
  LocalSubprocessTerminalHandle,
  SubprocessOutcome,
  SubprocessTerminalForeground,
  SubprocessTerminalSignal,
} from './types.js'

const SIGNALS: ReadonlySet<string> = new Set<SubprocessTerminalSignal>(['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGTSTP', 'SIGHUP'])

/** One live terminal of this machine. */
export class TerminalHandle extends Tree<NativeTerminal> implements LocalSubprocessTerminalHandle {
  readonly pid: number
  readonly output: Readable
  readonly done: Promise<SubprocessOutcome>
  private readonly argv: readonly string[]
  private readonly cwd: string
  private readonly calls = new Set<Promise<unknown>>()
  private ending: Promise<void> | undefined

  constructor(
    native: NativeTerminal,
    { argv, cwd }: NativeTerminalSpec,
    private readonly recording: Recording | undefined,
  ) {
    super(native)
    this.pid = native.pid()
    this.argv = argv
    this.cwd = cwd
    this.output = new TerminalOutput(native, recording)
    this.done = contained(this.settled())
  }

  write(data: string | Uint8Array): Promise<void> {
    return this.inFlight(async () => {
      if (typeof data !== 'string' && !types.isUint8Array(data)) {
        throw new TypeError(`what is typed must be a string or a Uint8Array, not of type ${typeof data}`)
      }
      // A copy: the caller may change its bytes while they are typed.
      const bytes = Buffer.from(data as Uint8Array)
      await this.told(() => this.native.write(bytes))
      await this.recording?.input(bytes)
    })
  }

  resize(cols: number, rows: number): Promise<void> {
    return this.inFlight(async () => {
      checkSize('cols', cols)
      checkSize('rows', rows)
      await this.told(() => this.native.resize(cols, rows))
      await this.recording?.resize(cols, rows)
    })
  }

  inspectForeground(): Promise<SubprocessTerminalForeground | undefined> {
    return this.inFlight(async () => {
      const foreground = await this.told(() => this.native.inspectForeground())
      if (foreground === null) return undefined
      const { processGroupId, inputWaiting } = foreground
      return { processGroupId, inputWaiting: inputWaiting === 'waiting', inputWaitingState: inputWaiting }
    })
  }

  signalForeground(signal: SubprocessTerminalSignal): Promise<number> {
    return this.inFlight(async () => {
      if (!SIGNALS.has(signal)) throw new TypeError(`signal must be one of ${[...SIGNALS].join(', ')}, not ${String(signal)}`)
      return this.told(() => this.native.signalForeground(signal))
    })
  }

  terminate(): Promise<void> {
    if (this.ending !== undefined) return this.ending
    const ending = this.terminated()
    this.ending = ending
    // After a failure another call tries again.
    ending.catch(() => {
      this.ending = undefined
    })
    return ending
  }

  override async end(): Promise<void> {
    const settled = this.done.catch(() => {})
    await this.terminate()
    await settled
  }

  /** What was printed is still there to be read. A recording whose output nobody has begun to read is over: it would have no end. */
  override release(): void {
    if (!this.output.readableDidRead) contained(this.recording?.end() ?? Promise.resolve())
  }

  private async terminated(): Promise<void> {
    try {
      await this.native.terminateSession()
    } catch (error) {
      throw this.cleanupFailure(error)
    }
    // The addon has answered them all; their answers may still be on their way through the loop.
    await Promise.allSettled(this.calls)
  }

  /** Makes a call that is over before the termination is. */
  private inFlight<T>(call: () => Promise<T>): Promise<T> {
    const made = call()
    const over = (): void => {
      this.calls.delete(made)
    }
    this.calls.add(made)
    made.then(over, over)
    return made
  }

  private async settled(): Promise<SubprocessOutcome> {
    try {
      return publicOutcome(await this.native.done(true))
    } catch (error) {
      throw spawnFailure(error, this.argv, this.cwd)
    }
  }

  /** Asks the addon, and says what is part of the contract in the contract's words. */
  private async told<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw subprocessError(error, isNative(error) ? WORDS[error.kind] : undefined)
    }
  }

  private cleanupFailure(error: unknown): unknown {
    if (!isNative(error) || error.kind !== 'Survivors') return subprocessError(error)
    const pids = (error.survivors ?? []).flatMap(({ pid }) => (pid === undefined ? [] : [pid]))
    if (pids.length === 0) return subprocessError(error)
    const named = pids.length === 1 && pids[0] === this.pid ? `surviving pid: ${this.pid}` : `surviving pids: ${pids.join(', ')}`
    return subprocessError(error, `terminal cleanup failed; ${named}`)
  }
}

const WORDS: Readonly<Record<string, string>> = {
  Exited: 'terminal process has exited',
  NoForeground: 'cannot resolve foreground process group',
  OwnGroup: 'terminate the terminal session instead',
}

/** What the programs print. Nothing is read ahead of the consumer but a buffer of this size. */
class TerminalOutput extends Readable {
  constructor(
    private readonly native: NativeTerminal,
    private readonly recording: Recording | undefined,
  ) {
    super({ highWaterMark: 64 * 1024 })
    // A terminal that fails tells so by its `done`, too; nobody has to listen here.
    this.on('error', () => {})
  }

  override _read(): void {
    this.pull().catch((error: unknown) => this.destroy(error as Error))
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.native.closeOutput()
    const closed = this.recording?.end() ?? Promise.resolve()
    closed.then(() => callback(error))
  }

  private async pull(): Promise<void> {
    const bytes = await answered(() => this.native.read())
    if (bytes === null) {
      // Whoever has seen the end finds the recording complete.
      await this.recording?.end()
      this.push(null)
      return
    }
    await this.recording?.output(bytes)
    this.push(bytes)
  }
}
