/**
 * Signals for processes that this runtime did not start.
 *
 * @module
 */
import { spawnSync } from 'node:child_process'

/**
 * Sends a signal to a process group; where that fails, to the process of the same id alone. A group that is gone, or may not be
 * signalled, is no error.
 *
 * An id that is no integer above 1 is refused without a word: 0, -1 and 1 would reach the host itself, everybody, or init. An
 * unknown signal throws a `TypeError`.
 *
 * The id of a group that has ended may be another's by now. A handle of this package needs none: `terminate()` reaches the whole tree,
 * and nobody else.
 *
 * @example
 * ```ts
 * import { spawn } from 'node:child_process'
 * import { once } from 'node:events'
 * import { killGroup } from 'dsh-subprocess'
 *
 * const child = spawn('sleep', ['300'], { detached: true })
 * await once(child, 'spawn')
 * killGroup(child.pid ?? -1, 'SIGTERM')
 * const [, signal] = await once(child, 'exit')
 * console.log(signal) // SIGTERM
 * ```
 */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  if (!Number.isSafeInteger(pid) || pid <= 1) return
  if (!delivered(-pid, signal)) delivered(pid, signal)
}

function delivered(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== 'kill') throw error
    return false
  }
}

/**
 * Ends a process tree on Windows, at once, whatever its members are about to do. That the tree is gone, or cannot be ended, is no
 * error. On any other system it throws: there a tree is ended by its group ({@link killGroup}) or its handle.
 *
 * @example
 * ```ts
 * import { taskkillProcessTree } from 'dsh-subprocess'
 *
 * try {
 *   taskkillProcessTree(4321)
 * } catch (error) {
 *   console.log((error as Error).message) // taskkillProcessTree is for Windows alone: this is linux
 * }
 * ```
 */
export function taskkillProcessTree(pid: number): void {
  if (process.platform !== 'win32') throw new Error(`taskkillProcessTree is for Windows alone: this is ${process.platform}`)
  if (!Number.isSafeInteger(pid) || pid <= 0) return
  spawnSync('taskkill', ['/PID', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true })
}
