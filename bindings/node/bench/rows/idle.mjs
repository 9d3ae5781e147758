/** `idle-500`: what a host does for five hundred sleeping children, each awaited, both its streams collected. */
import { setTimeout as pause } from 'node:timers/promises'

import { activity } from '../process-status.mjs'
import { ON_PIPES } from './contenders.mjs'

const CHILDREN = 500
const SECONDS = 5

async function open(contender) {
  const children = []
  const close = async () => {
    for (const child of children) child.kill()
    await Promise.all(children.map((child) => child.end))
  }
  try {
    for (let at = 0; at < CHILDREN; at += 1) {
      const child = contender.start(['/bin/sh', '-c', 'echo; exec sleep 600'])
      children.push(child)
      await child.ready()
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    async sample() {
      globalThis.gc()
      const before = activity()
      const started = performance.now()
      await pause(SECONDS * 1000)
      const seconds = (performance.now() - started) / 1000
      const after = activity()
      return {
        cpu_percent: (after.processorNs - before.processorNs) / 1e7 / seconds,
        wake_ups_per_s: (after.wakeUps - before.wakeUps) / seconds,
        threads: after.threads,
      }
    },
    close,
  }
}

export const IDLE_ROWS = [
  {
    name: 'idle-500',
    contenders: ON_PIPES,
    memories: [0],
    hosts: 'kept',
    // The engine tidies up for some seconds after so many spawns: the first round is thrown away.
    effort: { warmUp: 1, rounds: 3, seconds: 60 },
    open,
  },
]
