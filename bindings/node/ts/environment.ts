/**
 * The environment of children: the host's without its credentials, and what a caller adds or removes.
 *
 * @module
 */
import { addon } from './native.js'

/**
 * Which names are credentials, anywhere in them and in any case. What {@link scrubbedParentEnv} removes is more than this; the
 * pattern is for those who filter an environment of their own.
 *
 * @example
 * ```ts
 * import { SENSITIVE_ENV_PATTERN } from 'dsh-subprocess'
 *
 * console.log(SENSITIVE_ENV_PATTERN.test('npm_config_authToken')) // true
 * console.log(SENSITIVE_ENV_PATTERN.test('LANG')) // false
 * ```
 */
export const SENSITIVE_ENV_PATTERN = /KEY|PASSWORD|SECRET|TOKEN/i

/**
 * Returns the environment of this thread as a child may have it: without credentials, and without the variables that a harness tells
 * its children about itself with. It is a copy of the moment.
 *
 * A name is a credential by {@link SENSITIVE_ENV_PATTERN} and by more that it does not say, such as passphrases; harmless names that
 * match by accident stay. Values go too, where they are a well-known token or a private key, and URLs lose their passwords.
 *
 * @example
 * ```ts
 * import { scrubbedParentEnv } from 'dsh-subprocess'
 *
 * process.env['EXAMPLE_API_KEY'] = 'x'
 * const env = scrubbedParentEnv()
 * console.log('EXAMPLE_API_KEY' in env, env['PATH'] === process.env['PATH']) // false true
 * ```
 */
export function scrubbedParentEnv(): Record<string, string> {
  const env: Record<string, string> = {}
  const scrubbed = addon().scrub(ambientEnvironment())
  if (scrubbed === '') return env
  for (const entry of scrubbed.split('\0')) {
    // On Windows a name may begin with the sign.
    const sign = entry.indexOf('=', 1)
    env[entry.slice(0, sign)] = entry.slice(sign + 1)
  }
  return env
}

/**
 * Returns {@link scrubbedParentEnv} with `extra` on top: a string always wins, `undefined` removes a variable.
 *
 * It is for those who start a process by other means; a spec of this package takes `extra` itself.
 *
 * @example
 * ```ts
 * import { childEnv } from 'dsh-subprocess'
 *
 * const env = childEnv({ SERVICE_TOKEN: 'for this child alone', HOME: undefined })
 * console.log(env['SERVICE_TOKEN'], 'HOME' in env) // for this child alone false
 * ```
 */
export function childEnv(extra: Readonly<NodeJS.ProcessEnv> = {}): Record<string, string> {
  return overlaid(scrubbedParentEnv(), extra, process.platform === 'win32')
}

/** Puts variables on top of others. Where the case of a name does not count, the overlay's spelling is kept. */
export function overlaid(
  base: Readonly<Record<string, string>>,
  extra: Readonly<NodeJS.ProcessEnv>,
  ignoreCase: boolean,
): Record<string, string> {
  const env = { ...base }
  for (const [name, value] of Object.entries(extra)) {
    if (ignoreCase) {
      const folded = name.toUpperCase()
      for (const other of Object.keys(env)) if (other.toUpperCase() === folded) delete env[other]
    }
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}

/**
 * Returns the environment of this very thread, which in a worker is a copy of its own: `NAME=value`, separated by NUL.
 *
 * It is read at each spawn and never kept, since any code of the host may change it in between.
 */
export function ambientEnvironment(): string {
  const { env } = process
  let joined = ''
  // Not Object.keys: it asks for each variable whether it is enumerable, which all are, and takes twice the time.
  for (const name of Reflect.ownKeys(env)) {
    // A host may have put an object of its own in the place of the real one.
    if (typeof name !== 'string') continue
    const value = env[name]
    if (value === undefined) continue
    const entry = `${name}=${value}`
    if (joined !== '') joined += '\0'
    // A worker's copy can hold what no environment can; it ends where the system's would.
    const end = entry.indexOf('\0')
    joined += end === -1 ? entry : entry.slice(0, end)
  }
  return joined
}
