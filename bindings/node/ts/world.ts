/**
 * The processes of this machine, of which a runtime is the public face.
 *
 * @module
 */
import { onAbort } from './abort.js'
import { ambientEnvironment } from './environment.js'
import { answered, spawnFailure, subprocessError } from './errors.js'
import { ProcessHandle } from './handle.js'
import { mount, unmount } from './host-exit.js'
import { resolveExecutable } from './lookup.js'
import { addon, type NativeRuntime, type NativeTerminal, type NativeTerminalSpec, type NativeTree } from './native.js'
import { checkOptions } from './options.js'
import { Recording } from './recording.js'
import { checkSignal, shown } from './checks.js'
import { nativeSpec, nativeTerminalSpec } from './spec.js'
import { TerminalHandle } from './terminal.js'
import type { Tree } from './tree.js'
import type {
  LocalRuntimeOptions,
  LocalSubprocessHandle,
  LocalSubprocessTerminalHandle,
  SpawnInternals,
  SubprocessOwnership,
  SubprocessSpawnSpec,
  SubprocessTerminalSpawnSpec,
  TerminalEnvironment,
} from './types.js'

/** One runtime of the addon, and what lives in it. */
export class LocalWorld {
  readonly options: Readonly<LocalRuntimeOptions>
  private readonly native: NativeRuntime
  /** A tree is in here until it is known to be gone, so that the disposal can say of each whether it ended. */
  private readonly live = new Set<Tree<NativeTree>>()
  private spillDir: string | undefined
  private disposal: Promise<void> | undefined

  /** Throws where the mechanism that is asked for does not work here. */
  constructor(options: LocalRuntimeOptions) {
    checkOptions(options)
    this.options = Object.freeze({ ...options })
    try {
      this.native = new (addon().Runtime)(this.options)
    } catch (error) {
      throw subprocessError(error)
    }
    mount(this)
  }

  spawn(spec: SubprocessSpawnSpec, internals: SpawnInternals | undefined): LocalSubprocessHandle {
    const { signal } = spec
    const asked = nativeSpec(spec, signal)
    this.setSpillDir(internals?.spillDir)
    let native
    try {
      native = this.native.spawn(asked)
    } catch (error) {
      throw subprocessError(error)
    }
    try {
      return this.adopted(new ProcessHandle(native, asked, signal))
    } catch (error) {
      // A signal that cannot be listened to: nobody gets the handle of what was started.
      native.kill()
      throw error
    }
  }

  async spawnTerminal(spec: SubprocessTerminalSpawnSpec): Promise<LocalSubprocessTerminalHandle> {
    const { signal } = spec
    const asked = nativeTerminalSpec(spec)
    checkSignal(signal)
    signal?.throwIfAborted()
    const recording = await recorded(spec, asked)
    try {
      const native = await this.allocated(asked, signal)
      return this.adopted(new TerminalHandle(native, asked, recording))
    } catch (error) {
      await recording?.discard()
      throw error
    }
  }

  resolveExecutable(command: string, env?: Readonly<NodeJS.ProcessEnv>, signal?: AbortSignal): Promise<string> {
    return resolveExecutable(this.native, command, env, signal)
  }

  terminalEnvironment(): Promise<TerminalEnvironment> {
    return answered(() => this.native.terminalEnvironment(ambientEnvironment()))
  }

  ownership(): SubprocessOwnership {
    return this.native.ownership()
  }

  killAll(): void {
    this.native.killAll()
  }

  /** Ends everything, once. */
  dispose(): Promise<void> {
    return (this.disposal ??= this.tornDown())
  }

  private async tornDown(): Promise<void> {
    // Nothing can be started from here on.
    const whole = answered(() => this.native.dispose())
    const trees = [...this.live]
    const [all, ...each] = await Promise.allSettled([whole, ...trees.map((tree) => tree.end())])
    // Those of the trees say more than what the addon has to say of all of them.
    const ofTrees = reasons(each)
    const failures = ofTrees.length > 0 ? ofTrees : reasons([all])
    if (failures.length > 0) this.killAll()
    for (const tree of trees) tree.release()
    this.live.clear()
    unmount(this)
    if (failures.length > 1) throw new AggregateError(failures, 'local subprocess teardown failed')
    if (failures.length === 1) throw failures[0]
  }

  private adopted<T extends Tree<NativeTree>>(tree: T): T {
    this.live.add(tree)
    const gone = (): void => {
      this.live.delete(tree)
    }
    tree.gone.then(gone, () => {})
    return tree
  }

  /** Opens a terminal. Where the signal aborts, even when that is too late, there is none. */
  private async allocated(asked: NativeTerminalSpec, signal: AbortSignal | undefined): Promise<NativeTerminal> {
    signal?.throwIfAborted()
    const cancellation = new (addon().Cancellation)()
    const disarm = signal === undefined ? undefined : onAbort(signal, () => cancellation.cancel())
    try {
      const native = await this.native.spawnTerminal(asked, cancellation)
      if (signal?.aborted === true) native.kill()
      signal?.throwIfAborted()
      return native
    } catch (error) {
      signal?.throwIfAborted()
      throw spawnFailure(error, asked.argv, asked.cwd)
    } finally {
      disarm?.()
    }
  }

  private setSpillDir(directory: string | undefined): void {
    if (directory === this.spillDir) return
    if (directory !== undefined && typeof directory !== 'string') {
      throw new TypeError(`internals.spillDir must be a path, not ${shown(directory)}`)
    }
    this.native.setSpillDir(directory ?? null)
    this.spillDir = directory
  }
}

/** Begins the recording of a terminal that is about to be opened. */
async function recorded(
  { recording, env }: SubprocessTerminalSpawnSpec,
  { cols, rows, terminalType }: NativeTerminalSpec,
): Promise<Recording | undefined> {
  if (recording === undefined) return undefined
  return Recording.create(recording, {
    cols,
    rows,
    terminalType: env?.['TERM'] ?? terminalType,
    shell: env?.['SHELL'] ?? process.env['SHELL'],
  })
}

function reasons(settled: readonly PromiseSettledResult<unknown>[]): unknown[] {
  return settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
}
