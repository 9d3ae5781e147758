/**
 * The settings of a runtime, checked.
 *
 * @module
 */
import { checkBytes, checkDuration, shown } from './checks.js'
import type { LocalRuntimeOptions } from './types.js'

const MECHANISMS: readonly unknown[] = ['auto', 'cgroup', 'reaper', 'process_group']

/** Checks what may come from a configuration file. What is not known here is not looked at: a harness has settings of its own. */
export function checkOptions(options: LocalRuntimeOptions): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`the options must be an object, not ${shown(options)}`)
  const { ownership, killBoundMs, writeBoundMs, spillTotalBytes, keptSpills, reapOrphans } = options
  if (ownership !== undefined && !MECHANISMS.includes(ownership)) {
    throw new TypeError(`ownership must be one of ${MECHANISMS.join(', ')}, not ${shown(ownership)}`)
  }
  checkDuration('killBoundMs', killBoundMs)
  checkDuration('writeBoundMs', writeBoundMs)
  if (spillTotalBytes !== undefined) checkBytes('spillTotalBytes', spillTotalBytes, 0)
  if (keptSpills !== undefined && typeof keptSpills !== 'string')
    throw new TypeError(`keptSpills must be a path, not ${shown(keptSpills)}`)
  if (reapOrphans !== undefined && typeof reapOrphans !== 'boolean')
    throw new TypeError(`reapOrphans must be a boolean, not ${shown(reapOrphans)}`)
}
