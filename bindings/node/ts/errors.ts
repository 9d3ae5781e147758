/**
 * The errors of the package, shaped as those of `child_process`.
 *
 * @module
 */
import type { NativeError } from './native.js'
import type { SubprocessMember } from './types.js'

/** What kind of failure a {@link SubprocessError} is: finer than its `code`, and there also where the system has no code. */
export type SubprocessErrorKind =
  | 'InvalidSpec'
  | 'CwdNotFound'
  | 'CwdNotDirectory'
  | 'CwdNotSearchable'
  | 'ProgramNotFound'
  | 'ProgramNotExecutable'
  | 'ProgramFormat'
  | 'InterpreterNotFound'
  | 'ArgumentTooLong'
  | 'PathUnresolvable'
  | 'ResourceExhausted'
  | 'PermissionDenied'
  | 'Cancelled'
  | 'Disposed'
  | 'ForkedProcess'
  | 'OwnershipUnavailable'
  | 'OwnershipLost'
  | 'Survivors'
  | 'Several'
  | 'SpillUnavailable'
  | 'Exited'
  | 'InputNotRead'
  | 'LineTooLong'
  | 'NoForeground'
  | 'OwnGroup'
  | 'Transport'
  | 'Unsupported'
  | 'Os'

/** What a {@link SubprocessError} tells beside its text. */
export interface SubprocessErrorFacts {
  /** What kind of failure it is. */
  kind: SubprocessErrorKind
  /** What failed: `'spawn'`, `'terminate'`, `'wait'`, `'look-up'`, `'write'`, … */
  operation: string
  /** Whether the command may have run. It is repeated safely only after `'no'`. */
  mayHaveStarted: 'no' | 'yes' | 'unknown'
  /** The system's name of the error: `'ENOENT'`. */
  code?: string
  /** Its number, negative as Node.js has it. */
  errno?: number
  /** `'spawn <program>'`, or `'chdir'` where the working directory is to blame. */
  syscall?: string
  /** The program, or the working directory where that is to blame. */
  path?: string
  /** The arguments behind the program. */
  spawnargs?: string[]
  /** The members that outlived `SIGKILL`, where `kind` is `'Survivors'`. */
  survivors?: SubprocessMember[]
  /** How many bytes of a write to a terminal were taken before it failed. */
  written?: number
}

/**
 * A failure of the runtime. A non-zero exit, a signal, a timeout and truncated output are results, never errors.
 *
 * @example
 * ```ts
 * import { LocalSubprocessRuntime, SubprocessError } from 'dsh-subprocess'
 *
 * const runtime = new LocalSubprocessRuntime()
 * const handle = runtime.spawn({
 *   argv: ['no-such-program'],
 *   cwd: '/',
 *   stdio: { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
 *   graceMs: 1000,
 * })
 * const error: unknown = await handle.done.catch((error: unknown) => error)
 * if (!(error instanceof SubprocessError)) throw new Error('it cannot have run')
 * console.log(error.code, error.kind, error.mayHaveStarted) // ENOENT ProgramNotFound no
 * await runtime.dispose()
 * ```
 */
export class SubprocessError extends Error implements SubprocessErrorFacts {
  declare readonly kind: SubprocessErrorKind
  declare readonly operation: string
  declare readonly mayHaveStarted: 'no' | 'yes' | 'unknown'
  declare readonly code?: string
  declare readonly errno?: number
  declare readonly syscall?: string
  declare readonly path?: string
  declare readonly spawnargs?: string[]
  declare readonly survivors?: SubprocessMember[]
  declare readonly written?: number

  constructor(message: string, facts: SubprocessErrorFacts, options?: { cause?: unknown }) {
    super(message, options)
    // Only what is known is there: an absent code is no property whose value is undefined.
    for (const [name, value] of Object.entries(facts)) {
      if (value !== undefined) Object.defineProperty(this, name, { value, enumerable: true, configurable: true, writable: true })
    }
  }

  static {
    Object.defineProperty(this.prototype, 'name', { value: 'SubprocessError', configurable: true, writable: true })
  }
}

/** Makes the error of a request that is refused before the addon sees it. */
export function refused(kind: SubprocessErrorKind, operation: string, message: string, cause?: unknown): SubprocessError {
  return new SubprocessError(message, { kind, operation, mayHaveStarted: 'no' }, cause === undefined ? undefined : { cause })
}

/** Whether the addon says so. */
export function isNative(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as Partial<NativeError>).kind === 'string' && !(error instanceof SubprocessError)
}

/** Makes a public error of what the addon threw or rejected with, in other words where they are given. Anything else stays as it is. */
export function subprocessError(error: unknown, message?: string): unknown {
  if (!isNative(error)) return error
  return new SubprocessError(message ?? error.message, facts(error), { cause: error })
}

const CWD_KINDS: ReadonlySet<string> = new Set(['CwdNotFound', 'CwdNotDirectory', 'CwdNotSearchable'])

/** Makes the error of a spawn that failed. A directory that cannot be entered is told apart from a program that is missing. */
export function spawnFailure(error: unknown, argv: readonly string[], cwd: string): unknown {
  if (!isNative(error) || error.operation !== 'spawn') return subprocessError(error)
  const [program = '', ...spawnargs] = argv
  const blamed = CWD_KINDS.has(error.kind) ? { syscall: 'chdir', path: cwd } : { syscall: `spawn ${program}`, path: program }
  const input = CWD_KINDS.has(error.kind) ? `chdir ${cwd}` : blamed.syscall
  const code = error.code === undefined ? '' : ` ${error.code}`
  return new SubprocessError(`${input}${code}: ${error.message}`, { ...facts(error), ...blamed, spawnargs }, { cause: error })
}

function facts(error: NativeError): SubprocessErrorFacts {
  const { kind, operation, mayHaveStarted, code, errno, survivors, written } = error
  return {
    kind: kind as SubprocessErrorKind,
    operation,
    mayHaveStarted: mayHaveStarted as SubprocessErrorFacts['mayHaveStarted'],
    ...(code !== undefined && { code }),
    ...(errno !== undefined && { errno }),
    ...(survivors !== undefined && { survivors }),
    ...(written !== undefined && { written }),
  }
}

/** Waits for an answer of the addon, and rejects with a public error. */
export async function answered<T>(ask: () => Promise<T> | T): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw subprocessError(error)
  }
}

/** Lets a promise that nobody may ever look at reject without ending the host. */
export function contained<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
