/** `spawn-c16`, `spawn-c64`: spawns completed per second, so many at once. */
import { ON_PIPES } from './contenders.mjs'
import { TRUE } from './spawn.mjs'

/** Spawns in a sample. */
const SPAWNS = 256

function opener(atOnce) {
  return async (contender) => ({
    async sample() {
      let left = SPAWNS
      const lane = async () => {
        while (left > 0) {
          left -= 1
          await contender.start(TRUE).end
        }
      }
      const started = performance.now()
      await Promise.all(Array.from({ length: atOnce }, lane))
      return { per_s: (SPAWNS / (performance.now() - started)) * 1000 }
    },
  })
}

export const CONCURRENT_ROWS = [16, 64].map((atOnce) => ({
  name: `spawn-c${atOnce}`,
  contenders: ON_PIPES,
  memories: [0],
  hosts: 'kept',
  field: 'per_s',
  effort: { warmUp: 3, rounds: 40, seconds: 25 },
  open: opener(atOnce),
}))
