/** This project: one runtime, and what it collects stays in it. */
import { once } from 'node:events'

import { LocalSubprocessRuntime } from '../../dist/index.mjs'
import { RETAINED } from './tail.mjs'

const GRACE = 3000

/** More than is ever written. */
const SPILL = 4 * 2 ** 30

/** A tree; it has ended when its target is reaped, its streams are complete and no member is left. */
class Child {
  constructor(handle) {
    this.handle = handle
    this.end = Promise.all([handle.done, handle.waitForExit()])
  }

  get pid() {
    return this.handle.pid
  }

  ready() {
    return this.handle.collected.stdout.changed(0)
  }

  terminate() {
    this.handle.terminate()
    return this.handle.waitForExit()
  }

  kill() {
    this.handle.terminateForHostExit()
  }
}

class Terminal {
  constructor(handle) {
    this.handle = handle
    this.end = Promise.all([once(handle.output, 'end'), handle.done])
  }

  listen(listener) {
    this.handle.output.on('data', listener)
  }

  write(data) {
    return this.handle.write(data)
  }

  close() {
    return this.handle.terminate()
  }
}

class DshSubprocess {
  constructor(runtime, tier) {
    this.runtime = runtime
    this.tier = tier
  }

  start(argv, spill) {
    const collect = { maxBytes: RETAINED }
    const stdio = { stdin: 'ignore', stdout: spill === undefined ? collect : { ...collect, spill }, stderr: collect }
    return new Child(this.runtime.spawn({ argv, cwd: '/', stdio, graceMs: GRACE }))
  }

  async collect(argv, directory) {
    if (directory !== undefined) this.runtime.internals.spillDir = directory
    const child = this.start(argv, directory === undefined ? undefined : { maxBytes: SPILL })
    await child.end
    const { total, spill } = child.handle.collected.stdout
    return { total, path: spill.path }
  }

  async open(argv) {
    return new Terminal(await this.runtime.spawnTerminal({ argv, cwd: '/', rows: 24, cols: 80, graceMs: GRACE }))
  }

  close() {
    return this.runtime.dispose()
  }
}

export default async function open(ownership) {
  const runtime = new LocalSubprocessRuntime({ ownership })
  const { mechanism } = await runtime.ownership()
  return new DshSubprocess(runtime, mechanism)
}
