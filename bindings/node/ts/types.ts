/**
 * What callers ask for and what they get: the shapes of the subprocess contract, and what this runtime offers beyond it.
 *
 * Every limit, directory and time is explicit; nothing here has a default that varies with the deployment.
 *
 * @module
 */
import type { Duplex, Readable, Writable } from 'node:stream'

/** The names of the variables that a harness tells its children about itself with. They never reach a child by themselves. */
export const DSH_ENV_PREFIX = 'DSH_' as const

/** The largest grace, in milliseconds: the largest delay of a timer in Node.js. */
export const MAX_TIMER_DELAY_MS = 2_147_483_647

/** The name of a variable of the harness's own. */
export type DshEnvironmentKey = `${typeof DSH_ENV_PREFIX}${string}`

/** Variables of the harness's own, for one child. */
export type DshEnvironment = Readonly<Record<DshEnvironmentKey, string>>

/** One collected stream, as {@link OutputCollector.finalize} gives it. */
export interface CollectedOutput {
  /** The text: the tail of the stream where it is truncated. */
  text: string
  /** Whether bytes are missing from the text. */
  truncated: boolean
  /** A file with the whole stream, where there is one. */
  spillPath?: string
}

/**
 * What a child reads on descriptor 0.
 *
 * - `'ignore'`: the null device, so the end of the file at once.
 * - `'pipe'`: the handle's `stdin`.
 * - `{ data }`: these bytes (a string is encoded as UTF-8), then the end of the file. Descriptor 0 is a socket. A child that does
 *   not read them all is no error.
 * - `'inherit'`: the host's own standard input. Beyond the reference.
 */
export type SubprocessStdinMode = 'ignore' | 'pipe' | 'inherit' | { readonly data: string | Uint8Array }

/** When the file of a spilled stream is removed: with its handle, with the runtime, or never. */
export type SpillLife = 'handle' | 'runtime' | 'keep'

/** Bounded memory for one output stream: the last `maxBytes` bytes exactly, however they were chunked. */
export interface SubprocessCollect {
  /** Bytes retained from the end of the stream. A safe integer, 0 or more. */
  maxBytes: number
  /** Bytes retained from its beginning, beside the tail; 0 where it is left out. Beyond the reference. */
  headBytes?: number | undefined
  /** A file for the whole stream, made when the stream first exceeds `maxBytes`. */
  spill?:
    | {
        /** The largest file, in bytes: a longer stream has none, and is not advertised. A safe integer above 0. */
        maxBytes: number
        /** When the file goes; `'runtime'` where it is left out. Beyond the reference. */
        life?: SpillLife | undefined
      }
    | undefined
}

/** Where an output stream goes: to the caller raw, to the host's own stream, or into bounded memory. */
export type SubprocessOutputMode = 'pipe' | 'inherit' | SubprocessCollect

/** Where the error output goes; `'merge'` is the pipe of standard output, so that both keep their order. Beyond the reference. */
export type SubprocessErrorMode = SubprocessOutputMode | 'merge'

/** What becomes of the standard streams. */
export interface SubprocessStdio {
  stdin: SubprocessStdinMode
  stdout: SubprocessOutputMode
  stderr: SubprocessErrorMode
}

/** One process tree to start. */
export interface SubprocessSpawnSpec {
  /** The program and its arguments, never interpreted by a shell. A program without a slash is searched on the child's own `PATH`. */
  argv: readonly string[]
  /** The working directory, absolute. */
  cwd: string
  /** The standard streams. */
  stdio: SubprocessStdio
  /**
   * Milliseconds between `SIGTERM` and `SIGKILL` when the tree is terminated, and, unless `drainMs` says otherwise, how long `done`
   * waits after the target's exit for streams that somebody still holds open. Above 0, at most {@link MAX_TIMER_DELAY_MS}.
   */
  graceMs: number
  /** How long `done` waits for held streams, where that is not `graceMs`. 0 or more. Beyond the reference. */
  drainMs?: number | undefined
  /** Terminates the tree when it aborts, at any time until the tree is gone. */
  signal?: AbortSignal | undefined
  /** Variables on top of the scrubbed environment of the host. A string always wins; `undefined` removes a variable. */
  env?: NodeJS.ProcessEnv | undefined
  /**
   * Whether the child gets a control pipe: a duplex byte stream on a descriptor beside its standard ones, whose number is in
   * `DSH_SUBPROCESS_CONTROL`. The caller's end is the handle's `control`. Beyond the reference.
   */
  control?: boolean | undefined
}

/** How a target ended. Exit facts only: no output, and no cause. */
export interface SubprocessOutcome {
  /** The exit code; `null` where a signal ended it, or where nobody knows. */
  exitCode: number | null
  /** The signal that ended it, or `null`; `null`, too, where Node.js has no name for it. */
  signal: NodeJS.Signals | null
}

/** One read of a collected stream. */
export interface SubprocessOutputRead {
  /** The text from the offset on, or all that is retained where the read is lossy. */
  text: string
  /** The byte offset to go on from. A character that is incomplete so far is left for the next read. */
  nextOffset: number
  /** Whether bytes from the offset on are no longer in memory. */
  lossy: boolean
  /** A file with the whole stream, where there is one. */
  spillPath?: string
}

/** One read of a collected stream, as bytes. */
export interface SubprocessBytesRead {
  /** The bytes from `offset` on. */
  bytes: Buffer
  /** Where the bytes begin in the stream. */
  offset: number
  /** The byte offset to go on from. */
  nextOffset: number
  /** Bytes that are missing between the offset that was asked for and the end of the read. */
  gap: number
}

/** All that is retained of a stream. */
export interface SubprocessSnapshot {
  /** The beginning, as far as `headBytes` retains it. */
  head: Buffer
  /** The end. */
  tail: Buffer
  /** Bytes the stream had in all. */
  total: number
  /** Bytes that are missing between the two. */
  dropped: number
  /** Whether the stream has ended. */
  sealed: boolean
}

/** What became of a stream's spill file. */
export type SubprocessSpill =
  | { state: 'none' }
  | { state: 'available'; path: string; bytes: number }
  | { state: 'withdrawn'; reason: string }

/**
 * Reads a collected stream by absolute byte offset, while it grows and after its end. A read consumes nothing, so any number of
 * readers go on from their own offsets.
 */
export interface SubprocessOutputReader {
  /**
   * Reads the text from a byte offset on.
   *
   * An offset outside the stream is clamped. Bytes that are no UTF-8 become U+FFFD; a character that is merely incomplete is held
   * back until its rest has arrived or the stream has ended. Throws where a string cannot hold it (512 MiB).
   */
  readFrom(offset: number): SubprocessOutputRead
  /** Reads the bytes from an offset on. Beyond the reference. */
  readBytes(offset: number): SubprocessBytesRead
  /** Copies all that is retained. */
  snapshot(): SubprocessSnapshot
  /** Resolves when the stream has more than `offset` bytes, or has ended. Beyond the reference. */
  changed(offset: number): Promise<void>
  /** Bytes the stream has so far. Beyond the reference. */
  readonly total: number
  /** Whether the stream has ended. Beyond the reference. */
  readonly sealed: boolean
  /** What became of its file. Beyond the reference. */
  readonly spill: SubprocessSpill
}

/** The readers of the collected streams. */
export interface SubprocessCollectedOutputs {
  /** There where standard output is collected. With `'merge'` it holds both streams. */
  readonly stdout?: SubprocessOutputReader
  /** There where the error output is collected by itself. */
  readonly stderr?: SubprocessOutputReader
}

/** Which mechanism owns a tree, and what it does not guarantee. */
export interface SubprocessOwnership {
  /** `'cgroup'`, `'reaper'`, `'process_group'`, or another world's. */
  mechanism: string
  /** One sentence for each thing that is not guaranteed. */
  weaknesses: string[]
}

/** What a tree used so far. Each is `undefined` where the mechanism does not measure it. */
export interface SubprocessUsage {
  /** Processor time in user mode, in milliseconds. */
  userMs?: number
  /** Processor time in the kernel, in milliseconds. */
  systemMs?: number
  /** The most memory the tree had at once, in bytes. */
  peakMemoryBytes?: number
}

/** A process of a tree. */
export interface SubprocessMember {
  pid: number | undefined
  /** Its command, for a person to read. */
  command: string
  /** Whether what points to the tree is evidence and no proof. */
  uncertain: boolean
}

/** A process that still holds a stream whose drain ran out. */
export interface SubprocessHolder {
  member: SubprocessMember
  stream: 'stdout' | 'stderr' | 'terminal'
}

/** What every live tree has, with or without a terminal. Beyond the reference. */
export interface SubprocessTree {
  /** Tells who owns the tree. Rejects where nobody can tell any more. */
  ownership(): Promise<SubprocessOwnership>
  /** Tells what the tree used so far. */
  usage(): Promise<SubprocessUsage>
  /** Lists the live members, the target first, at most 1,024. */
  members(): Promise<SubprocessMember[]>
  /** Lists who still holds a stream whose drain ran out. */
  holders(): Promise<SubprocessHolder[]>
  /** Lists the processes that are likely to run on whatever the runtime does. */
  survivors(): Promise<SubprocessMember[]>
  /** Lets the event loop end although this tree lives. Its runtime kills it then. */
  unref(): this
  /** Takes {@link unref} back. */
  ref(): this
}

/** One live process tree. */
export interface SubprocessHandle extends SubprocessTree {
  /**
   * The target's id, which is the id of its session and process group; -1 for a failed spawn.
   *
   * The spawn does not wait for the target to run, and this does, where it must: for a fraction of a millisecond in general, and
   * for at most a second (an exec can hang on a dead network file system), after which it is -1 until the target runs.
   */
  readonly pid: number
  /** The child's standard input, there where it was spawned with `stdin: 'pipe'`. */
  readonly stdin: Writable | undefined
  /** The raw output, there where it was spawned with `stdout: 'pipe'`. */
  readonly stdout: Readable | undefined
  /** The raw error output, there where it was spawned with `stderr: 'pipe'`. */
  readonly stderr: Readable | undefined
  /** The control pipe, there where the spec asked for one. Beyond the reference. */
  readonly control: Duplex | undefined
  /** The readers of the collected streams, also after the end. */
  readonly collected: SubprocessCollectedOutputs
  /** Resolves with the target's pid when it runs; rejects as `done` does where it never will. Beyond the reference. */
  readonly started: Promise<number>
  /** Resolves with how the target ended, before its streams have; rejects as `done` does. Beyond the reference. */
  readonly exited: Promise<SubprocessOutcome>
  /**
   * Resolves with how the target ended, once its collected and raw streams have ended, or `graceMs` after its exit where somebody
   * still holds one open. Rejects for a spawn that failed ({@link SubprocessError}) and where the tree's owner failed.
   */
  readonly done: Promise<SubprocessOutcome>
  /**
   * Ends the whole tree: `SIGTERM` to every member, `graceMs` later `SIGKILL` to what is left. The only verb of termination. A second
   * call joins the first; on a tree that is gone it does nothing.
   */
  terminate(): void
  /**
   * Resolves to `true` when the whole tree is gone, to `false` when the signal aborts first. Rejects where members outlived
   * `SIGKILL` by the runtime's bound, and where the tree's owner failed.
   */
  waitForExit(signal?: AbortSignal): Promise<boolean>
}

/** A handle of the local world. */
export interface LocalSubprocessHandle extends SubprocessHandle {
  /** Sends `SIGKILL` to the whole tree, at once and without waiting: for a host that is about to exit. Never throws. */
  terminateForHostExit(): void
}

/** The signals that can be sent to a terminal's foreground group. */
export type SubprocessTerminalSignal = 'SIGINT' | 'SIGTERM' | 'SIGKILL' | 'SIGTSTP' | 'SIGHUP'

/**
 * Where to record a session, in the format asciicast v2.
 *
 * What the programs print is recorded when the handle's `output` is read, and complete when that has ended. A recording that cannot go
 * on stops, and a warning of the process tells so; the session goes on.
 */
export interface SubprocessRecording {
  /** The file to make: it must not exist. Mode 0600. */
  path: string
  /** Whether what is typed is recorded, too. `false` where it is left out: it may be a password. */
  input?: boolean | undefined
}

/** One terminal to open, and the program on it. */
export interface SubprocessTerminalSpawnSpec {
  /** The program and its arguments. */
  argv: readonly string[]
  /** The working directory, absolute. */
  cwd: string
  /** Variables on top of the scrubbed environment of the host; `undefined` removes one. An explicit `TERM` wins over `terminalType`. */
  env?: NodeJS.ProcessEnv | undefined
  /** Rows of the window: 1 to 65,535. */
  rows: number
  /** Columns of the window: 1 to 65,535. */
  cols: number
  /** Milliseconds between the signals of a termination; see {@link SubprocessSpawnSpec.graceMs}. */
  graceMs: number
  /** Abandons the allocation. It does nothing to a terminal whose handle is there. */
  signal?: AbortSignal | undefined
  /** What becomes `TERM`; `'dumb'` where it is left out. Beyond the reference. */
  terminalType?: string | undefined
  /** Records the session. Beyond the reference. */
  recording?: SubprocessRecording | undefined
}

/** Who has a terminal. */
export interface SubprocessTerminalForeground {
  /** The foreground process group. */
  processGroupId: number
  /** Whether a member of it is proven to wait for input from this terminal. */
  inputWaiting: boolean
  /** The same with its third answer: whether nobody can tell. Beyond the reference. */
  inputWaitingState: 'waiting' | 'not-waiting' | 'unknown'
}

/** One live terminal, and the process tree on it. */
export interface SubprocessTerminalHandle extends SubprocessTree {
  /** The program's id, which is the id of its session. */
  readonly pid: number
  /** What the programs print, byte for byte. Not reading it holds them up, and loses nothing. */
  readonly output: Readable
  /** Resolves with how the program ended. Rejects where the terminal failed. */
  readonly done: Promise<SubprocessOutcome>
  /** Types `data` verbatim; resolves when the terminal has taken it. Rejects with 'terminal process has exited' after the exit. */
  write(data: string | Uint8Array): Promise<void>
  /** Looks who has the terminal; `undefined` where no process group has it. */
  inspectForeground(): Promise<SubprocessTerminalForeground | undefined>
  /** Sends a signal to the foreground group, and resolves with the group's id. */
  signalForeground(signal: SubprocessTerminalSignal): Promise<number>
  /** Changes the size of the window, columns first. Rejects after the program's exit. Beyond the reference. */
  resize(cols: number, rows: number): Promise<void>
  /**
   * Ends the whole session, and resolves when it is gone and no call of this handle is in flight. The same promise while it goes
   * on; after a failure another call tries again.
   */
  terminate(): Promise<void>
}

/** A terminal of the local world. */
export interface LocalSubprocessTerminalHandle extends SubprocessTerminalHandle {
  /** Sends `SIGKILL` to the whole session, at once and without waiting: for a host that is about to exit. Never throws. */
  terminateForHostExit(): void
}

/** What this world's terminals are like. */
export interface TerminalEnvironment {
  /** The system, as `process.platform` names it. */
  platform: string
  /** The user's shell: `SHELL` where it is not empty, else the account's. */
  shell: string
}

/** The knobs that may change while a runtime lives. */
export interface SpawnInternals {
  /** The directory that the private directory of spilled streams is made in, for trees started from now on. `TMPDIR` where it is not set. */
  spillDir?: string | undefined
}

/** The settings of a runtime, fixed when it is made. */
export interface LocalRuntimeOptions {
  /** The mechanism that owns trees: the strongest that works here (`'auto'`), or this one or an error. */
  ownership?: 'auto' | 'cgroup' | 'reaper' | 'process_group' | undefined
  /** How long the end of a tree is waited for after `SIGKILL` before its survivors are reported. 5,000 ms. */
  killBoundMs?: number | undefined
  /** How long a write to a terminal may get no further. 5,000 ms. */
  writeBoundMs?: number | undefined
  /** Bytes that the runtime's spilled streams may take in all. 4 GiB. */
  spillTotalBytes?: number | undefined
  /** The directory of spills that are kept. `dsh-subprocess/spills` below `XDG_STATE_HOME` or `~/.local/state`. */
  keptSpills?: string | undefined
  /** Reaps what the trees leave to this process where it is process 1 or a subreaper. */
  reapOrphans?: boolean | undefined
}

/** The processes of one execution world. */
export interface SubprocessRuntime {
  /**
   * Finds an executable. An absolute path is verified and answered verbatim; a bare name is searched on the `PATH` of the scrubbed
   * environment with `env` on top.
   */
  resolveExecutable(command: string, env?: Readonly<NodeJS.ProcessEnv>, signal?: AbortSignal): Promise<string>
  /** Starts a tree and returns its live handle at once. Throws only for what is known without starting anything. */
  spawn(spec: SubprocessSpawnSpec): SubprocessHandle
  /** Opens a terminal with a program on it; resolves when the program runs. */
  spawnTerminal(spec: SubprocessTerminalSpawnSpec): Promise<SubprocessTerminalHandle>
}
