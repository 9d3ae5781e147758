/**
 * The handle of a tree without a terminal.
 *
 * @module
 */
import type { Duplex, Readable, Writable } from 'node:stream'

import { onAbort } from './abort.js'
import { answered, contained, spawnFailure, SubprocessError } from './errors.js'
import { ExitWaits } from './exit-waits.js'
import type { NativeProcess, NativeReader, NativeSpec } from './native.js'
import { publicOutcome } from './outcome.js'
import { OutputReader } from './reader.js'
import { checkSignal } from './checks.js'
import { RawStreams } from './streams.js'
import { Tree } from './tree.js'
import type { LocalSubprocessHandle, SubprocessCollectedOutputs, SubprocessOutcome } from './types.js'

/** One live process tree of this machine. */
export class ProcessHandle extends Tree<NativeProcess> implements LocalSubprocessHandle {
  readonly done: Promise<SubprocessOutcome>
  private readonly argv: readonly string[]
  private readonly cwd: string
  private readonly streams: RawStreams
  private readonly waits: ExitWaits
  private readers: SubprocessCollectedOutputs | undefined
  private knownPid: number | undefined
  private runs: Promise<number> | undefined
  private ended: Promise<SubprocessOutcome> | undefined
  private ending = false
  private disarm = (): void => {}

  constructor(
    native: NativeProcess,
    { argv, cwd, stdin, stdout, stderr, control, drainMs }: NativeSpec,
    signal: AbortSignal | undefined,
  ) {
    super(native)
    // What a handle keeps of its spec is what its errors name: neither the data for the child nor the environment.
    this.argv = argv
    this.cwd = cwd
    this.waits = new ExitWaits(native)
    this.streams = new RawStreams(native, {
      stdin: stdin === 'pipe',
      stdout: stdout === 'pipe',
      stderr: stderr === 'pipe',
      control,
      drainMs,
    })
    this.done = contained(this.settled())
    // The caller's code ran since the spec's signal was looked at, where the spec has getters.
    if (signal?.aborted === true) this.terminate()
    else if (signal !== undefined) this.disarm = onAbort(signal, () => this.terminate())
    // Where the wait fails the tree may live on, and an abort still asks for its end.
    this.gone.then(
      () => {
        this.disarm()
        this.streams.treeExited()
      },
      () => {},
    )
  }

  get pid(): number {
    if (this.knownPid !== undefined) return this.knownPid
    const pid = this.native.pid()
    if (pid > 0) this.knownPid = pid
    return pid
  }

  get stdin(): Writable | undefined {
    return this.streams.stdin
  }

  get stdout(): Readable | undefined {
    return this.streams.stdout
  }

  get stderr(): Readable | undefined {
    return this.streams.stderr
  }

  get control(): Duplex | undefined {
    return this.streams.control
  }

  get collected(): SubprocessCollectedOutputs {
    return (this.readers ??= {
      ...reader('stdout', this.native.stdoutReader),
      ...reader('stderr', this.native.stderrReader),
    })
  }

  get started(): Promise<number> {
    return (this.runs ??= contained(this.told(() => this.native.started())))
  }

  get exited(): Promise<SubprocessOutcome> {
    return (this.ended ??= contained(this.told(() => this.native.exited()).then(publicOutcome)))
  }

  terminate(): void {
    this.native.terminate()
    if (this.ending) return
    this.ending = true
    // The ladder keeps the event loop alive until it is through. After a failure another call tries again.
    this.native.treeExited(true).catch(() => {
      this.ending = false
    })
  }

  async waitForExit(signal?: AbortSignal): Promise<boolean> {
    checkSignal(signal)
    if (signal === undefined) {
      await answered(() => this.native.treeExited(true))
      return true
    }
    if (signal.aborted) return answered(() => this.native.isGone())
    return answered(() => this.waits.before(signal))
  }

  override async end(): Promise<void> {
    this.terminate()
    const settled = this.done.catch(() => {})
    await answered(() => this.native.treeExited(true))
    await settled
  }

  override release(): void {
    this.disarm()
    this.streams.dispose()
  }

  protected override setReferenced(referenced: boolean): void {
    super.setReferenced(referenced)
    this.streams.setReferenced(referenced)
    this.waits.setReferenced(referenced)
  }

  private async settled(): Promise<SubprocessOutcome> {
    try {
      const facts = await this.told(() => this.native.done(true))
      await this.streams.drained()
      return publicOutcome(facts)
    } catch (error) {
      // The owner failed under a command that may run: what is left of it must not outlive the answer.
      if (error instanceof SubprocessError && error.mayHaveStarted !== 'no') this.terminate()
      throw error
    }
  }

  private async told<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw spawnFailure(error, this.argv, this.cwd)
    }
  }
}

function reader(name: 'stdout' | 'stderr', native: NativeReader | null): SubprocessCollectedOutputs {
  return native === null ? {} : { [name]: new OutputReader(native) }
}
