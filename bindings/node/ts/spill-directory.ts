/**
 * The directory of the spill files that this side writes.
 *
 * @module
 */
import { mkdirSync, mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let own: string | undefined

/**
 * Returns a private directory below the system's temporary one, the same for the whole thread. It is made when it is first needed,
 * and again where a cleaner has removed it. Throws what the file system throws.
 */
export function ownSpillDirectory(): string {
  if (own === undefined || !isThere(own)) own = mkdtempSync(join(tmpdir(), 'dsh-subprocess-'))
  return own
}

/** Makes a directory of the caller's choice, again where it was removed. */
export function madeSpillDirectory(directory: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

function isThere(directory: string): boolean {
  return statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true
}
