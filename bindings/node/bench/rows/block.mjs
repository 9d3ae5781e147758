/**
 * `spawn-block`, `spawn-block-pid`, `spawn-block-2g`: how long the event loop does nothing else for a spawn.
 *
 * Once the call by itself, since nothing can interrupt it, and once the call and all that the loop does afterwards until the child
 * has ended and what it left in the loop is cleared away. The latter is processor time: `performance.eventLoopUtilization()` counts
 * a wait that a signal interrupts as activity (libuv begins to measure anew after `EINTR`), and the end of a child is told with
 * `SIGCHLD`.
 */
import { setImmediate as turn } from 'node:timers/promises'

import { loopProcessorNs } from '../process-status.mjs'
import { LARGE, ON_PIPES } from './contenders.mjs'
import { TRUE } from './spawn.mjs'

function opener(readsPid) {
  return async (contender) => ({
    async sample() {
      const called = process.hrtime.bigint()
      const child = contender.start(TRUE)
      if (readsPid && !(child.pid > 0)) throw new Error(`the pid of ${TRUE[0]} is ${child.pid}`)
      const call = Number(process.hrtime.bigint() - called)
      const returned = loopProcessorNs()
      await child.end
      // Handles are closed in a later phase of the loop than the last event of the child comes in.
      await turn()
      await turn()
      const rest = loopProcessorNs() - returned
      return { time_us: call / 1000, loop_us: (call + rest) / 1000 }
    },
  })
}

const row = { contenders: ON_PIPES, hosts: 'kept', field: 'time_us', ratios: { loop_us: 'loop_ratio' } }
const effort = { warmUp: 50, rounds: 500, seconds: 20 }

export const BLOCK_ROWS = [
  { ...row, name: 'spawn-block', memories: [0], effort, open: opener(false) },
  { ...row, name: 'spawn-block-pid', memories: [0], effort, open: opener(true) },
  {
    ...row,
    name: 'spawn-block-2g',
    memories: [0, LARGE],
    effort: { warmUp: 10, rounds: 100, seconds: 30 },
    open: opener(false),
  },
]
