/**
 * The rows, in the order they are measured and printed in.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {string[]} contenders modules of `contenders/`; ratios are to the first that is not this project
 * @property {number[]} memories bytes that the hosts have beside their own; the largest is the row's, 0 what it is compared with
 * @property {'kept' | 'fresh'} hosts whether one host takes all samples of a contender, or a new one each
 * @property {{ warmUp: number, rounds: number, seconds: number }} effort
 * @property {'time_us' | 'per_s' | 'mib_s'} [field] the field of a sample that the row is about
 * @property {Record<string, string>} [ratios] further fields, and what their ratios are called
 * @property {() => { parameters: object, discard(): void }} [prepare] makes what all hosts of the row need
 * @property {(contender: object, parameters: object) => Promise<{ sample(): Promise<object>, close?(): Promise<void> }>} open
 *   runs in the host, which calls `close` before it ends
 */
import { BLOCK_ROWS } from './block.mjs'
import { COLLECT_ROWS } from './collect.mjs'
import { CONCURRENT_ROWS } from './concurrent.mjs'
import { IDLE_ROWS } from './idle.mjs'
import { SPAWN_ROWS } from './spawn.mjs'
import { TERMINAL_ROWS } from './terminal.mjs'
import { TERMINATE_ROWS } from './terminate.mjs'

/** @type {Row[]} */
export const ROWS = [
  ...SPAWN_ROWS,
  ...BLOCK_ROWS,
  ...CONCURRENT_ROWS,
  ...COLLECT_ROWS,
  ...TERMINATE_ROWS,
  ...TERMINAL_ROWS,
  ...IDLE_ROWS,
]
