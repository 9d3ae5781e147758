/** `spawn`, `spawn-2g-host`: from the call until a program that does nothing has ended, both its streams collected. */
import { LARGE, ON_PIPES } from './contenders.mjs'

/** A program that does nothing. */
export const TRUE = ['/bin/true']

async function open(contender) {
  return {
    async sample() {
      const started = performance.now()
      await contender.start(TRUE).end
      return { time_us: (performance.now() - started) * 1000 }
    },
  }
}

const row = { contenders: ON_PIPES, hosts: 'kept', field: 'time_us', open }

export const SPAWN_ROWS = [
  { ...row, name: 'spawn', memories: [0], effort: { warmUp: 50, rounds: 500, seconds: 20 } },
  { ...row, name: 'spawn-2g-host', memories: [0, LARGE], effort: { warmUp: 10, rounds: 100, seconds: 30 } },
]
