/** execa, with what its documentation offers for each task: collected whole where that is little, iterated and filed where not. */
import { once } from 'node:events'
import { join } from 'node:path'

import { execa } from 'execa'

import { Live } from './live.mjs'
import { Tail } from './tail.mjs'

const OPTIONS = { cwd: '/', detached: true, stdin: 'ignore', encoding: 'buffer', reject: false }

/** It has ended when its promise has settled: it is reaped, and its streams have ended. */
class Child {
  constructor(subprocess) {
    this.subprocess = subprocess
    this.end = subprocess.then((result) => {
      if (result.cause !== undefined && result.pid === undefined) throw result.cause
    })
  }

  get pid() {
    return this.subprocess.pid
  }

  /** Resolves with the first output; a target that exits before has failed, whatever still holds its streams. */
  async ready() {
    const exit = once(this.subprocess, 'exit').then(([code, signal]) => {
      throw new Error(`it ended with ${signal ?? code} before it was ready`)
    })
    await Promise.race([once(this.subprocess.stdout, 'data'), exit])
    exit.catch(() => {})
  }

  terminate() {
    process.kill(-this.pid, 'SIGTERM')
    return this.end
  }

  kill() {
    process.kill(-this.pid, 'SIGKILL')
  }
}

class Execa {
  tier = null
  live = new Live()

  start([program, ...args]) {
    return this.live.add(new Child(execa(program, args, OPTIONS)))
  }

  async collect([program, ...args], directory) {
    const path = directory === undefined ? undefined : join(directory, 'execa.log')
    const stdout = path === undefined ? 'pipe' : ['pipe', { file: path }]
    const subprocess = execa(program, args, { ...OPTIONS, stdout, buffer: { stdout: false } })
    const tail = new Tail()
    for await (const chunk of subprocess.iterable({ binary: true })) tail.push(chunk)
    await subprocess
    return { total: tail.total, path }
  }

  async close() {
    this.live.kill()
  }
}

export default function open() {
  return new Execa()
}
