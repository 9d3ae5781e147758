/** node:child_process, in a session of its own, so that it can be signalled as a group. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

import { Live } from './live.mjs'
import { Tail } from './tail.mjs'

/** It has ended when it is reaped and its streams have: 'close'. Nothing tells whether its tree is gone. */
class Child {
  constructor(child) {
    this.child = child
    this.end = once(child, 'close')
    this.exit = once(child, 'exit')
    this.stdout = new Tail()
    this.stderr = new Tail()
    child.stderr.on('data', (chunk) => this.stderr.push(chunk))
  }

  collect() {
    this.child.stdout.on('data', (chunk) => this.stdout.push(chunk))
    return this
  }

  get pid() {
    return this.child.pid
  }

  /** Resolves with the first output; a target that exits before has failed, whatever still holds its streams. */
  async ready() {
    const exit = this.exit.then(([code, signal]) => {
      throw new Error(`it ended with ${signal ?? code} before it was ready: ${this.stderr.text()}`)
    })
    await Promise.race([once(this.child.stdout, 'data'), exit])
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

class ChildProcess {
  tier = null
  live = new Live()

  spawn([program, ...args]) {
    const child = spawn(program, args, { cwd: '/', detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    return this.live.add(new Child(child))
  }

  start(argv) {
    return this.spawn(argv).collect()
  }

  async collect(argv, directory) {
    const child = this.spawn(argv)
    const path = directory === undefined ? undefined : join(directory, 'child-process.log')
    const filed =
      path === undefined
        ? undefined
        : pipeline(
            child.child.stdout,
            async function* (chunks) {
              for await (const chunk of chunks) {
                child.stdout.push(chunk)
                yield chunk
              }
            },
            createWriteStream(path, { flags: 'wx', mode: 0o600 }),
          )
    if (filed === undefined) child.collect()
    await Promise.all([child.end, filed])
    return { total: child.stdout.total, path }
  }

  async close() {
    this.live.kill()
  }
}

export default function open() {
  return new ChildProcess()
}
