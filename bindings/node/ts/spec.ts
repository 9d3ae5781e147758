/**
 * What callers ask for, checked and as the addon takes it.
 *
 * Texts and order of the checks of a spawn are part of the contract: grace, abort, argv, and only then the rest.
 *
 * @module
 */
import { isAbsolute } from 'node:path'
import { types } from 'node:util'

import { checkBytes, checkDuration, checkGrace, checkSignal, checkSize, checkStrings, shown } from './checks.js'
import { ambientEnvironment } from './environment.js'
import { refused } from './errors.js'
import type { NativeCollect, NativeOverlay, NativeSpec, NativeTerminalSpec } from './native.js'
import type {
  SubprocessCollect,
  SubprocessOutputMode,
  SubprocessSpawnSpec,
  SubprocessStdinMode,
  SubprocessTerminalSpawnSpec,
} from './types.js'

/** A nanosecond: the addon counts in whole ones, and none is no grace. */
const SHORTEST_GRACE_MS = 1e-6

/** Checks the spec of a tree, whose signal was taken from it before: a spec may have getters, and is asked for it once. */
export function nativeSpec(spec: SubprocessSpawnSpec, signal: AbortSignal | undefined): NativeSpec {
  const { graceMs, drainMs, stdio, control = false } = spec
  checkGrace(graceMs)
  checkSignal(signal)
  if (signal?.aborted === true) {
    throw refused('Cancelled', 'spawn', `aborted before spawn: ${printed(signal.reason)}`, signal.reason)
  }
  const argv = strings(spec.argv)
  if (argv.length === 0 || argv[0] === '') {
    throw refused('InvalidSpec', 'spawn', 'invalid argv: expected a non-empty program name at argv[0]')
  }
  checkStrings(argv)
  checkDuration('drainMs', drainMs)
  if (typeof control !== 'boolean') throw new TypeError(`control must be a boolean, not ${shown(control)}`)
  if (typeof stdio !== 'object' || stdio === null) throw new TypeError(`stdio must be an object, not ${shown(stdio)}`)
  return {
    argv,
    cwd: directory(spec.cwd),
    ambient: ambientEnvironment(),
    env: overlay(spec.env),
    stdin: nativeInput(stdio.stdin),
    stdout: nativeOutput('stdout', stdio.stdout),
    stderr: stdio.stderr === 'merge' ? 'merge' : nativeOutput('stderr', stdio.stderr),
    graceMs: Math.max(graceMs, SHORTEST_GRACE_MS),
    drainMs: drainMs ?? graceMs,
    control,
  }
}

/** Checks the spec of a terminal, whose signal is not looked at. */
export function nativeTerminalSpec(spec: SubprocessTerminalSpawnSpec): NativeTerminalSpec {
  const { rows, cols, graceMs, terminalType = 'dumb' } = spec
  const argv = strings(spec.argv)
  if (argv.length === 0 || argv[0] === '') {
    throw refused('InvalidSpec', 'spawn', 'terminal argv must contain a program')
  }
  checkGrace(graceMs)
  checkStrings(argv)
  checkSize('rows', rows)
  checkSize('cols', cols)
  if (typeof terminalType !== 'string') throw new TypeError(`terminalType must be a string, not ${shown(terminalType)}`)
  return {
    argv,
    cwd: directory(spec.cwd),
    ambient: ambientEnvironment(),
    env: overlay(spec.env),
    rows,
    cols,
    graceMs: Math.max(graceMs, SHORTEST_GRACE_MS),
    terminalType,
  }
}

/**
 * Copies an argv; what is no array has no program. The caller's own array may change later, and may be a proxy, which the addon does not
 * take for an array.
 */
function strings(argv: readonly string[]): string[] {
  return Array.isArray(argv) ? [...argv] : []
}

/** Turns variables into an overlay. A value is never told: it may be a credential. */
export function overlay(env: Readonly<NodeJS.ProcessEnv> | undefined): NativeOverlay {
  if (env === undefined) return []
  if (typeof env !== 'object' || env === null) throw new TypeError(`env must be an object, not ${shown(env)}`)
  return Object.entries(env).map(([name, value]: [string, unknown]) => {
    if (value === undefined) return [name, null]
    if (typeof value === 'string') return [name, value]
    throw new TypeError(
      `env variable ${JSON.stringify(name)} must be a string or undefined, not of type ${value === null ? 'null' : typeof value}`,
    )
  })
}

/**
 * Makes a directory absolute. It is not normalised: `link/..` is not the directory that the link is in.
 */
function directory(cwd: string): string {
  if (typeof cwd !== 'string') throw new TypeError(`cwd must be a string, not ${shown(cwd)}`)
  if (cwd === '') throw refused('InvalidSpec', 'spawn', 'cwd must not be empty')
  return isAbsolute(cwd) ? cwd : `${process.cwd()}/${cwd}`
}

function nativeInput(mode: SubprocessStdinMode): NativeSpec['stdin'] {
  if (mode === 'ignore' || mode === 'pipe' || mode === 'inherit') return mode
  const data: unknown = typeof mode === 'object' && mode !== null ? mode.data : undefined
  if (typeof data === 'string') return Buffer.from(data)
  if (types.isUint8Array(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  throw new TypeError(
    `stdio.stdin must be 'ignore', 'pipe', 'inherit' or { data } with a string or a Uint8Array, not ${shown(mode)}`,
  )
}

function nativeOutput(stream: 'stdout' | 'stderr', mode: SubprocessOutputMode): NativeSpec['stdout'] {
  if (mode === 'pipe' || mode === 'inherit') return mode
  if (typeof mode === 'object' && mode !== null) return nativeCollect(stream, mode)
  const words = stream === 'stderr' ? "'pipe', 'inherit', 'merge'" : "'pipe', 'inherit'"
  throw new TypeError(`stdio.${stream} must be ${words} or an object with maxBytes, not ${shown(mode)}`)
}

function nativeCollect(stream: string, { maxBytes, headBytes = 0, spill }: SubprocessCollect): NativeCollect {
  checkBytes(`stdio.${stream}.maxBytes`, maxBytes, 0)
  checkBytes(`stdio.${stream}.headBytes`, headBytes, 0)
  if (spill === undefined) return { maxBytes, headBytes }
  if (typeof spill !== 'object' || spill === null) {
    throw new TypeError(`stdio.${stream}.spill must be an object, not ${shown(spill)}`)
  }
  checkBytes(`stdio.${stream}.spill.maxBytes`, spill.maxBytes, 1)
  const { life = 'runtime' } = spill
  if (life !== 'handle' && life !== 'runtime' && life !== 'keep') {
    throw new TypeError(`stdio.${stream}.spill.life must be 'handle', 'runtime' or 'keep', not ${shown(life)}`)
  }
  return { maxBytes, headBytes, spillBytes: spill.maxBytes, spillLife: life }
}

/** The reason of an abort, for an error's text. */
function printed(reason: unknown): string {
  if (reason === undefined || reason === null) return 'aborted'
  try {
    return String(reason)
  } catch {
    // An object that cannot be a string.
    return 'aborted'
  }
}
