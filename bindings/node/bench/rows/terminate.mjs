/** `terminate-1`, `-100`, `-1000`: so many sleepers, a leader and its children: from the signal until the last of them is gone. */
import { ON_PIPES } from './contenders.mjs'

/** One process, asleep. */
const ONE = 'echo; exec sleep 600'

/**
 * Starts the others, says so, and waits for them. All hold the leader's streams, so that peers can tell when the last has ended.
 *
 * On `SIGTERM` it reaps them before it exits: process 1 would get them otherwise, and may take its time while they fill the table.
 */
const LEADER = `at=1
while [ "$at" -lt "$0" ]; do sleep 600 & at=$((at + 1)); done
trap 'wait; exit' TERM
echo
wait`

function opener(count) {
  return async (contender) => ({
    async sample() {
      const child = contender.start(['/bin/sh', '-c', count === 1 ? ONE : LEADER, String(count)])
      try {
        await child.ready()
        const started = performance.now()
        await child.terminate()
        const time = performance.now() - started
        return { time_us: time * 1000 }
      } catch (error) {
        child.kill()
        throw error
      } finally {
        await child.end
      }
    },
  })
}

export const TERMINATE_ROWS = [
  [1, 200],
  [100, 30],
  [1000, 7],
].map(([count, rounds]) => ({
  name: `terminate-${count}`,
  contenders: ON_PIPES,
  memories: [0],
  hosts: 'kept',
  field: 'time_us',
  effort: { warmUp: Math.ceil(rounds / 10), rounds, seconds: 30 },
  open: opener(count),
}))
