/**
 * How a target ended, in the names that Node.js has.
 *
 * @module
 */
import { constants } from 'node:os'

import type { NativeOutcome } from './native.js'
import type { SubprocessOutcome } from './types.js'

/** Makes the public outcome. A signal that has no name in Node.js, as those for real-time use, is told as what nobody knows. */
export function publicOutcome({ exitCode, signal }: NativeOutcome): SubprocessOutcome {
  return { exitCode, signal: signal !== null && isSignal(signal) ? signal : null }
}

function isSignal(name: string): name is NodeJS.Signals {
  return Object.hasOwn(constants.signals, name)
}
