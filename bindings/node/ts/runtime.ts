/**
 * The runtime of this machine: by itself, on top of a class of a harness's own, and shared by those who want no object at all.
 *
 * @module
 */
import type {
  LocalRuntimeOptions,
  LocalSubprocessHandle,
  LocalSubprocessTerminalHandle,
  SpawnInternals,
  SubprocessOwnership,
  SubprocessRuntime,
  SubprocessSpawnSpec,
  SubprocessTerminalSpawnSpec,
  TerminalEnvironment,
} from './types.js'
import { LocalWorld } from './world.js'

/**
 * Where a runtime keeps its state: one property that is not enumerable. It is no private member, since a service is reached through
 * proxies, which have none; through them, and through objects that inherit from the runtime, this one is found.
 */
const WORLD: unique symbol = Symbol('dsh-subprocess.world')

/** The processes of this machine. */
export interface LocalSubprocess extends SubprocessRuntime {
  /** What may change while the runtime lives: looked at on every spawn. */
  internals: SpawnInternals
  /** The settings it was made with. */
  readonly options: Readonly<LocalRuntimeOptions>
  /** Starts a tree and returns its live handle at once. Throws only for what is known without starting anything. */
  spawn(spec: SubprocessSpawnSpec): LocalSubprocessHandle
  /** Opens a terminal with a program on it; resolves when the program runs. */
  spawnTerminal(spec: SubprocessTerminalSpawnSpec): Promise<LocalSubprocessTerminalHandle>
  /** Tells what this world's terminals are like. Beyond the reference. */
  terminalEnvironment(): Promise<TerminalEnvironment>
  /** Tells which mechanism owns the trees that are started from now on. Beyond the reference. */
  ownership(): SubprocessOwnership
  /**
   * Ends every tree and every terminal, and resolves when they are gone and their `done` has settled. Nothing can be started any more.
   * Another call gives the same promise.
   *
   * All are waited for before a failure is told: one as it is, several as an `AggregateError`. What is left is killed then.
   */
  dispose(): Promise<void>
  /** Is {@link dispose}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What a runtime registers its own disposal with: a context of cordis, or anything that has this method. */
export interface EffectScope {
  /** Calls the callback at once, and what that returns when the scope ends. */
  effect(callback: () => () => Promise<void>, label?: string): unknown
}

/** A class that {@link localSubprocess} can build on, abstract or not. */
// A mixin has to take the arguments of whatever class it is given, which TypeScript expresses in this one way.
export type BaseConstructor = abstract new (...args: any[]) => object

/** The class that {@link localSubprocess} makes, beside what it has of its base. */
export type LocalSubprocessConstructor = new (...args: any[]) => LocalSubprocess

/** The settings of a runtime, or how they follow from the arguments of the constructor. */
export type LocalSubprocessSettings<Args extends unknown[]> =
  LocalRuntimeOptions | ((...args: Args) => LocalRuntimeOptions | undefined)

interface Mounted {
  readonly [WORLD]: LocalWorld
}

/**
 * Makes a class that is a `base` and a runtime of this machine, so that a harness's own abstract class stays the base of the service.
 *
 * The constructor hands its arguments on to the base. Where the first of them has a method `effect`, as a context of cordis has, the
 * runtime is disposed of when that scope ends. Methods work on a proxy of the object, and in a class that extends it.
 *
 * The constructor throws a {@link SubprocessError} of the kind `'OwnershipUnavailable'` where the mechanism that the settings name
 * does not work here.
 *
 * @example
 * ```ts
 * import { localSubprocess, type SubprocessRuntime } from 'dsh-subprocess'
 *
 * abstract class Service {
 *   constructor(readonly name: string) {}
 *   abstract resolveExecutable: SubprocessRuntime['resolveExecutable']
 * }
 *
 * class Subprocess extends localSubprocess(Service, { killBoundMs: 2000 }) {}
 *
 * const service = new Subprocess('subprocess')
 * console.log(service.name, await service.resolveExecutable('/bin/sh')) // subprocess /bin/sh
 * await service.dispose()
 * ```
 */
export function localSubprocess<Base extends BaseConstructor>(
  base: Base,
  settings: LocalSubprocessSettings<ConstructorParameters<Base>> = {},
): LocalSubprocessConstructor & Base {
  abstract class Local extends base implements LocalSubprocess {
    internals: SpawnInternals = {}

    constructor(...args: any[]) {
      super(...args)
      const options = typeof settings === 'function' ? settings(...(args as ConstructorParameters<Base>)) : settings
      const world = new LocalWorld(options ?? {})
      Object.defineProperty(this, WORLD, { value: world })
      if (!isEffectScope(args[0])) return
      try {
        args[0].effect(() => () => this.dispose(), 'local subprocess teardown')
      } catch (error) {
        // A scope that has ended takes nothing more. There is nothing to end yet.
        world.dispose().catch(() => {})
        throw error
      }
    }

    get options(): Readonly<LocalRuntimeOptions> {
      return worldOf(this).options
    }

    resolveExecutable(command: string, env?: Readonly<NodeJS.ProcessEnv>, signal?: AbortSignal): Promise<string> {
      return worldOf(this).resolveExecutable(command, env, signal)
    }

    spawn(spec: SubprocessSpawnSpec): LocalSubprocessHandle {
      return worldOf(this).spawn(spec, this.internals)
    }

    spawnTerminal(spec: SubprocessTerminalSpawnSpec): Promise<LocalSubprocessTerminalHandle> {
      return worldOf(this).spawnTerminal(spec)
    }

    terminalEnvironment(): Promise<TerminalEnvironment> {
      return worldOf(this).terminalEnvironment()
    }

    ownership(): SubprocessOwnership {
      return worldOf(this).ownership()
    }

    dispose(): Promise<void> {
      return worldOf(this).dispose()
    }

    [Symbol.asyncDispose](): Promise<void> {
      return this.dispose()
    }
  }
  // Abstract only so that an abstract base can be extended: what a base leaves to be written is for the class that extends this one.
  return Local as unknown as LocalSubprocessConstructor & Base
}

/** Nothing of its own. */
class Bare {
  constructor(..._args: unknown[]) {}
}

function ownOptions(first: unknown, second: unknown): LocalRuntimeOptions | undefined {
  return (isEffectScope(first) ? second : first) as LocalRuntimeOptions | undefined
}

/**
 * Runs process trees on this machine: each is owned as a whole, started without the host's credentials, and ended by one verb.
 *
 * Made with a context of cordis, it is disposed of with that context. Otherwise {@link LocalSubprocess.dispose} is the caller's to
 * call; a host that exits without it kills what is left.
 *
 * @example
 * ```ts
 * import LocalSubprocessRuntime from 'dsh-subprocess'
 *
 * const runtime = new LocalSubprocessRuntime()
 * const handle = runtime.spawn({
 *   argv: ['sh', '-c', 'echo "$GREETING"; exit 3'],
 *   cwd: '/',
 *   env: { GREETING: 'hello' },
 *   stdio: { stdin: 'ignore', stdout: { maxBytes: 65_536 }, stderr: { maxBytes: 65_536 } },
 *   graceMs: 3000,
 * })
 * const { exitCode } = await handle.done
 * console.log(exitCode, handle.collected.stdout?.readFrom(0).text) // 3 hello
 * await runtime.dispose()
 * ```
 */
export class LocalSubprocessRuntime extends localSubprocess(Bare, ownOptions) {
  /** Makes a runtime. Throws where the mechanism that the options name does not work here. */
  constructor(options?: LocalRuntimeOptions)
  /** Makes a runtime that ends with a scope. */
  constructor(scope: EffectScope, options?: LocalRuntimeOptions)
  constructor(first?: EffectScope | LocalRuntimeOptions, second?: LocalRuntimeOptions) {
    super(first, second)
  }
}

let shared: LocalWorld | undefined

/**
 * Starts one tree without a runtime of the caller's own: those of one thread share one, which is made by the first call and lives as
 * long as the thread.
 *
 * @example
 * ```ts
 * import { spawnSubprocess } from 'dsh-subprocess'
 *
 * const handle = spawnSubprocess({
 *   argv: ['wc', '-c'],
 *   cwd: '/',
 *   stdio: { stdin: { data: 'twelve bytes' }, stdout: { maxBytes: 1024 }, stderr: 'inherit' },
 *   graceMs: 1000,
 * })
 * await handle.done
 * console.log(handle.collected.stdout?.readFrom(0).text.trim()) // 12
 * ```
 */
export function spawnSubprocess(spec: SubprocessSpawnSpec, internals?: SpawnInternals): LocalSubprocessHandle {
  return (shared ??= new LocalWorld({})).spawn(spec, internals)
}

function worldOf(runtime: object): LocalWorld {
  const world = (runtime as Partial<Mounted> | undefined)?.[WORLD]
  if (world === undefined) throw new TypeError('this is called on something that is no local subprocess runtime')
  return world
}

function isEffectScope(value: unknown): value is EffectScope {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    typeof (value as Partial<EffectScope>).effect === 'function'
  )
}
