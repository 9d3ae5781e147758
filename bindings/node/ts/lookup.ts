/**
 * Finds executables.
 *
 * @module
 */
import { isAbsolute } from 'node:path'

import { onAbort } from './abort.js'
import { ambientEnvironment } from './environment.js'
import { isNative, refused, subprocessError } from './errors.js'
import { addon, type NativeRuntime } from './native.js'
import { checkSignal } from './checks.js'
import { overlay } from './spec.js'

/**
 * Finds an executable: an absolute path is verified and answered as it is, a bare name is searched on the `PATH` of the scrubbed
 * environment with `env` on top. Where the signal aborts it rejects with the signal's own reason.
 */
export async function resolveExecutable(
  runtime: NativeRuntime,
  command: string,
  env: Readonly<NodeJS.ProcessEnv> | undefined,
  signal: AbortSignal | undefined,
): Promise<string> {
  if (typeof command !== 'string') throw new TypeError(`executable must be a string, not of type ${typeof command}`)
  if (command === '') throw refused('InvalidSpec', 'look-up', 'executable must be non-empty')
  checkSignal(signal)
  signal?.throwIfAborted()
  if (isRelativePath(command)) {
    throw refused(
      'InvalidSpec',
      'look-up',
      `command ${JSON.stringify(command)} is a relative path; use an absolute path or a bare name`,
    )
  }
  const variables = overlay(env)
  const cancellation = new (addon().Cancellation)()
  const disarm = signal === undefined ? undefined : onAbort(signal, () => cancellation.cancel())
  try {
    const path = await runtime.resolveExecutable(command, ambientEnvironment(), variables, cancellation)
    signal?.throwIfAborted()
    return path
  } catch (error) {
    signal?.throwIfAborted()
    throw lookupFailure(error, command)
  } finally {
    disarm?.()
  }
}

/** Whether a name has a directory in it and does not begin at the root. There is no directory that it could be meant from. */
function isRelativePath(command: string): boolean {
  const separator = process.platform === 'win32' ? /[/\\]/ : /\//
  return separator.test(command) && !isAbsolute(command)
}

/** Says a miss in the contract's words. */
function lookupFailure(error: unknown, command: string): unknown {
  if (!isNative(error) || (error.kind !== 'ProgramNotFound' && error.kind !== 'ProgramNotExecutable')) return subprocessError(error)
  const miss = isAbsolute(command) ? 'is not an executable file' : 'was not found on PATH'
  return subprocessError(error, `command ${JSON.stringify(command)} ${miss}`)
}
