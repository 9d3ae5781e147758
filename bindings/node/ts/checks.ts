/**
 * What a value that comes from outside must be, and how one that is not is told of.
 *
 * @module
 */
import { refused } from './errors.js'
import { MAX_TIMER_DELAY_MS } from './types.js'

/** Checks a grace. */
export function checkGrace(graceMs: number): void {
  if (typeof graceMs !== 'number' || !(graceMs > 0 && graceMs <= MAX_TIMER_DELAY_MS)) {
    throw refused(
      'InvalidSpec',
      'spawn',
      `subprocess graceMs must be a positive finite number no greater than ${MAX_TIMER_DELAY_MS}`,
    )
  }
}

/** Checks that what is to be listened to is a signal. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined) return
  if (
    typeof signal !== 'object' ||
    signal === null ||
    typeof signal.aborted !== 'boolean' ||
    typeof signal.addEventListener !== 'function' ||
    typeof signal.removeEventListener !== 'function'
  ) {
    throw new TypeError(`signal must be an AbortSignal, not ${shown(signal)}`)
  }
}

/** Checks the arguments of a program. */
export function checkStrings(argv: readonly unknown[]): void {
  // By index: a hole in the array is no string either, and `forEach` does not see it.
  for (let index = 0; index < argv.length; index += 1) {
    if (typeof argv[index] !== 'string') throw new TypeError(`argv[${index}] must be a string, not ${shown(argv[index])}`)
  }
}

/** Checks that a number of rows or columns is one that a terminal can have. */
export function checkSize(name: 'rows' | 'cols', size: number): void {
  if (!Number.isInteger(size) || size < 1 || size > 65_535) {
    throw new RangeError(`terminal ${name} must be an integer from 1 to 65535, not ${shown(size)}`)
  }
}

/** Checks a number of bytes. */
export function checkBytes(name: string, bytes: number, least: 0 | 1): void {
  if (!Number.isSafeInteger(bytes) || bytes < least) {
    throw new TypeError(`${name} must be a safe integer, ${least} or more, not ${shown(bytes)}`)
  }
}

/** Checks a duration that may be left out. */
export function checkDuration(name: string, milliseconds: number | undefined): void {
  if (milliseconds === undefined) return
  if (typeof milliseconds !== 'number' || !(milliseconds >= 0 && milliseconds <= MAX_TIMER_DELAY_MS)) {
    throw new RangeError(`${name} must be a number from 0 to ${MAX_TIMER_DELAY_MS}, not ${shown(milliseconds)}`)
  }
}

/** What a caller gave, for an error's text: short, and without what is in an object. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.slice(0, 64))
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value)
    default:
      return value === null ? 'null' : `a value of type ${typeof value}`
  }
}
