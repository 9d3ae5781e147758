/**
 * The native addon: its shape, and where it is found. Everything above it is TypeScript.
 *
 * @module
 */
import { readFileSync } from 'node:fs'

import type { SpillLife } from './types.js'

/** A variable to set (`string`) or remove (`null`). */
export type NativeOverlay = readonly (readonly [name: string, value: string | null])[]

export interface NativeCollect {
  maxBytes: number
  headBytes: number
  spillBytes?: number | undefined
  spillLife?: SpillLife | undefined
}

export interface NativeSpec {
  argv: readonly string[]
  cwd: string
  /** The host's environment: `NAME=value`, separated by NUL. */
  ambient: string
  env: NativeOverlay
  stdin: 'ignore' | 'pipe' | 'inherit' | Buffer
  stdout: 'pipe' | 'inherit' | NativeCollect
  stderr: 'pipe' | 'inherit' | 'merge' | NativeCollect
  graceMs: number
  drainMs: number
  control: boolean
}

export interface NativeTerminalSpec {
  argv: readonly string[]
  cwd: string
  ambient: string
  env: NativeOverlay
  rows: number
  cols: number
  graceMs: number
  terminalType: string
}

export interface NativeOptions {
  ownership?: string | undefined
  killBoundMs?: number | undefined
  writeBoundMs?: number | undefined
  spillTotalBytes?: number | undefined
  keptSpills?: string | undefined
  reapOrphans?: boolean | undefined
}

/** The code is `null` and the signal, too, where nobody knows. */
export interface NativeOutcome {
  exitCode: number | null
  signal: string | null
}

export interface NativeMember {
  pid: number | undefined
  command: string
  uncertain: boolean
}

export interface NativeRead {
  text: string
  nextOffset: number
  /** Bytes missing between the offset that was asked for and the text. */
  gap: number
  /** The path of the intact spill file. */
  spillPath?: string | undefined
}

/** A live reader. It stays valid after the tree's end. */
export interface NativeReader {
  readText(offset: number): NativeRead
  readBytes(offset: number): { bytes: Buffer; offset: number; nextOffset: number; gap: number }
  snapshot(): { head: Buffer; tail: Buffer; total: number; dropped: number; sealed: boolean }
  changed(offset: number): Promise<void>
  total(): number
  sealed(): boolean
  spill(): { state: string; path?: string; bytes?: number; reason?: string }
}

/**
 * What a tree answers, with or without a terminal. A promise rejects with a {@link NativeError}. `referenced` says whether the event
 * loop stays alive for the answer.
 */
export interface NativeTree {
  ownership(): Promise<{ mechanism: string; weaknesses: string[] }>
  usage(): Promise<{ userMs?: number; systemMs?: number; peakMemoryBytes?: number }>
  members(): Promise<NativeMember[]>
  holders(): Promise<{ member: NativeMember; stream: string }[]>
  survivors(): Promise<NativeMember[]>
  done(referenced: boolean): Promise<NativeOutcome>
  /** Begins the ladder. */
  terminate(): void
  /** Resolves when the whole tree is gone. */
  treeExited(referenced: boolean): Promise<void>
  /** Whether the tree is known to be gone by now. Throws the error where it can never be told. */
  isGone(): boolean
  /** Kills every member at once, and waits for nothing. */
  kill(): void
  /** Whether promises of this tree that were asked for as referenced keep the event loop alive: so at first. */
  setReferenced(referenced: boolean): void
}

export interface NativeProcess extends NativeTree {
  /** Waits for at most a second; -1 where there is none. */
  pid(): number
  started(): Promise<number>
  exited(): Promise<NativeOutcome>
  /** Takes the descriptor of a raw stream, once. -1 where it has ended with nothing unread, or was taken. */
  takeStdin(): number
  takeStdout(): number
  takeStderr(): number
  takeControl(): number
  /** Closes the control pipe of a tree that is gone, unless it was taken or has something to be read. */
  closeControlIfEmpty(): void
  readonly stdoutReader: NativeReader | null
  readonly stderrReader: NativeReader | null
}

export interface NativeTerminal extends NativeTree {
  pid(): number
  /** Resolves with at least one byte and at most 64 KiB, or with `null` at the end. One at a time. */
  read(): Promise<Buffer | null>
  /** Gives the output up: programs go on, and what they print is thrown away. */
  closeOutput(): void
  write(data: Buffer): Promise<void>
  resize(cols: number, rows: number): Promise<void>
  inspectForeground(): Promise<{ processGroupId: number; inputWaiting: 'waiting' | 'not-waiting' | 'unknown' } | null>
  signalForeground(signal: string): Promise<number>
  /** Terminates, and resolves when the session is gone and no call is in flight. */
  terminateSession(): Promise<void>
}

/** Cancels one allocation or look-up. */
export interface NativeCancellation {
  cancel(): void
}

export interface NativeRuntime {
  /** Throws what is known without starting anything. */
  spawn(spec: NativeSpec): NativeProcess
  spawnTerminal(spec: NativeTerminalSpec, cancellation: NativeCancellation): Promise<NativeTerminal>
  resolveExecutable(command: string, ambient: string, env: NativeOverlay, cancellation: NativeCancellation): Promise<string>
  terminalEnvironment(ambient: string): Promise<{ platform: string; shell: string }>
  ownership(): { mechanism: string; weaknesses: string[] }
  /** Sets the directory that spills are made in, for trees spawned from now on; `null` for the default. */
  setSpillDir(directory: string | null): void
  /** Sends `SIGKILL` to every tree and session, and waits for nothing. */
  killAll(): void
  /** Ends every tree and waits for it. */
  dispose(): Promise<void>
}

/** What the addon throws and rejects with: an `Error` with these properties. */
export interface NativeError extends Error {
  /** The name of the kind, as `ErrorKind` of the Rust seam has it: `'ProgramNotFound'`. */
  kind: string
  /** The operation that failed: `'spawn'`. */
  operation: string
  /** Whether the command may have run: `'no'`, `'yes'`, `'unknown'`. */
  mayHaveStarted: string
  /** The system's name of the error, where there is one: `'ENOENT'`; else the one that fits the kind, else `undefined`. */
  code?: string
  /** Its negative number, as Node.js has it. */
  errno?: number
  /** Of `Survivors`. */
  survivors?: NativeMember[]
  /** Of a terminal's write: bytes that were taken. */
  written?: number
}

export interface NativeCollector {
  push(chunk: Uint8Array): void
  seal(): void
  /** The retained tail. */
  tail(): Buffer
  reader(): NativeReader
}

export interface NativeAddon {
  Runtime: new (options: NativeOptions) => NativeRuntime
  Cancellation: new () => NativeCancellation
  /** A window of a stream, without a file. */
  Collector: new (maxBytes: number, headBytes: number) => NativeCollector
  /** Scrubs an environment: what is left of it, as `NAME=value` separated by NUL. */
  scrub(ambient: string): string
}

let loaded: NativeAddon | undefined

/**
 * Loads the addon of this platform, once per thread: the file beside `package.json`, else the platform's own package.
 *
 * Throws an `Error` that names what was tried and why each did not do; its `cause` is the first failure of a file that is there.
 */
export function addon(): NativeAddon {
  return (loaded ??= load())
}

function load(): NativeAddon {
  const target = targetName()
  // Relative to `dist`, where this module is.
  const candidates = [`../dsh-subprocess.${target}.node`, `dsh-subprocess-${target}`]
  const failures: { candidate: string; error: Error }[] = []
  for (const candidate of candidates) {
    try {
      return require(candidate) as NativeAddon
    } catch (error) {
      failures.push({ candidate, error: error as Error })
    }
  }
  const tried = failures.map(({ candidate, error }) => `${candidate} (${firstLine(error)})`).join(', ')
  const present = failures.find(({ error }) => (error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND')
  throw new Error(
    `no addon of dsh-subprocess for ${target}: tried ${tried}`,
    present === undefined ? undefined : { cause: present.error },
  )
}

function firstLine(error: Error): string {
  return String(error.message).split('\n', 1)[0] ?? ''
}

/** The name of this platform, as the files and packages of the addon have it. */
function targetName(): string {
  const { arch, platform } = process
  switch (platform) {
    case 'linux':
      return `linux-${arch}-${isMusl() ? 'musl' : 'gnu'}`
    case 'win32':
      return `win32-${arch}-msvc`
    default:
      return `${platform}-${arch}`
  }
}

/** Whether the C library is musl. Its `ldd` says so; where that cannot be read, only glibc tells its version in a report. */
function isMusl(): boolean {
  try {
    return readFileSync('/usr/bin/ldd', 'latin1').includes('musl')
  } catch {
    const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } }
    return header?.glibcVersionRuntime === undefined
  }
}
