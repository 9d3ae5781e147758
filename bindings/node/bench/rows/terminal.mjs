/** `pty-echo`, `pty-bulk`: a byte there and back, and many lines. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { median } from '../statistics.mjs'
import { ON_TERMINALS } from './contenders.mjs'

/** Round trips in a sample. */
const TRIPS = 200

/** The line is 63 characters and a line feed, of which a new terminal makes two characters. */
const LINE = `${'abcdefg '.repeat(8).slice(0, 63)}\n`
const BYTES = 64 * 2 ** 20
const LINES = BYTES / LINE.length

/** A program that prints what is typed, as it is; it begins with one byte when the terminal is in raw mode. */
async function openEcho(contender) {
  const terminal = await contender.open(['/bin/sh', '-c', 'stty raw -echo; printf .; exec cat'])
  let arrived
  terminal.listen(() => arrived())
  const next = () => new Promise((resolve) => (arrived = resolve))
  await next()
  const key = Buffer.from('x')
  return {
    async sample() {
      const trips = []
      for (let trip = 0; trip < TRIPS; trip += 1) {
        const back = next()
        const started = performance.now()
        const typed = terminal.write(key)
        await back
        trips.push((performance.now() - started) * 1000)
        await typed
      }
      return { time_us: median(trips) }
    },
    close: () => terminal.close(),
  }
}

function prepareBulk() {
  const directory = mkdtempSync(join(tmpdir(), 'dsh-subprocess-bench-'))
  const file = join(directory, 'lines')
  writeFileSync(file, LINE.repeat(LINES))
  return { parameters: { file }, discard: () => rmSync(directory, { recursive: true, force: true }) }
}

/** Prints the file and goes on living: node-pty can lose what a program printed just before its exit. */
const PRINTER = 'cat "$0"; exec sleep 600'

async function openBulk(contender, { file }) {
  return {
    async sample() {
      let total = 0
      const started = performance.now()
      const terminal = await contender.open(['/bin/sh', '-c', PRINTER, file])
      try {
        await new Promise((resolve) =>
          terminal.listen((chunk) => {
            total += chunk.length
            if (total >= BYTES + LINES) resolve()
          }),
        )
        return { mib_s: BYTES / 2 ** 20 / ((performance.now() - started) / 1000) }
      } finally {
        await terminal.close()
      }
    },
  }
}

const row = { contenders: ON_TERMINALS, memories: [0], hosts: 'kept' }

export const TERMINAL_ROWS = [
  { ...row, name: 'pty-echo', field: 'time_us', effort: { warmUp: 5, rounds: 100, seconds: 20 }, open: openEcho },
  {
    ...row,
    name: 'pty-bulk',
    field: 'mib_s',
    effort: { warmUp: 1, rounds: 9, seconds: 40 },
    prepare: prepareBulk,
    open: openBulk,
  },
]
