/**
 * Section E of the contract: the collected streams of trees, and their readers. Their files are in spill.spec.ts, a collector by itself
 * in collector.spec.ts.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { collecting, there, untilTotal } from './fixture/collected.js'
import { runHost } from './fixture/host.js'
import { exitsWith, prints, printsBytes, shell } from './fixture/probe.js'
import { openCase } from './fixture/runtime.js'
import { untilCollected, within } from './fixture/wait.js'

/** What no decoder may invent. */
const REPLACEMENT = '\uFFFD'

describe('the reader of a tree', () => {
  test('item 38: any number of cursors read while the stream grows and after its end', async () => {
    const { spawn } = openCase()
    const handle = spawn(shell('printf "one "; read -r go; printf "two "; read -r go; printf three'), collecting({ maxBytes: 64 }, 'pipe'))
    const reader = there(handle.collected.stdout)
    expect(await untilCollected(reader, 'one ')).toBe('one ')
    const early = reader.readFrom(0)
    expect(early).toEqual({ text: 'one ', nextOffset: 4, lossy: false })
    handle.stdin?.write('go\n')
    await untilCollected(reader, 'two ')
    const late = reader.readFrom(0)
    expect(late.text).toBe('one two ')
    handle.stdin?.end('go\n')
    await within('end', handle.done)
    expect(reader.readFrom(early.nextOffset).text).toBe('two three')
    expect(reader.readFrom(late.nextOffset).text).toBe('three')
    expect(reader.readFrom(0).text).toBe('one two three')
    expect(reader.readFrom(0).text).toBe('one two three')
    expect(reader).toMatchObject({ total: 13, sealed: true })
  })

  test('item 39: exactly the last bytes are retained, and output of exactly the bound has no file', async () => {
    const { spawn } = openCase()
    const exact = spawn(printsBytes(1_000), collecting({ maxBytes: 1_000, spill: { maxBytes: 10_000 } }))
    const over = spawn(printsBytes(1_001), collecting({ maxBytes: 1_000, spill: { maxBytes: 10_000 } }))
    await within('end', Promise.all([exact.done, over.done]))
    expect(there(exact.collected.stdout).readFrom(0)).toEqual({ text: 'x'.repeat(1_000), nextOffset: 1_000, lossy: false })
    expect(there(exact.collected.stdout).spill).toEqual({ state: 'none' })
    const read = there(over.collected.stdout).readFrom(0)
    expect(read).toMatchObject({ text: 'x'.repeat(1_000), nextOffset: 1_001, lossy: true })
    expect(readFileSync(read.spillPath as string, 'utf8')).toBe('x'.repeat(1_001))
  })

  test('item 40: offsets count the whole stream, and a read that lost bytes says so', async () => {
    const { spawn } = openCase()
    const handle = spawn(prints('abcdefgh'), collecting({ maxBytes: 4 }))
    await within('end', handle.done)
    const reader = there(handle.collected.stdout)
    expect(reader.readFrom(3)).toEqual({ text: 'efgh', nextOffset: 8, lossy: true })
    expect(reader.readFrom(4)).toEqual({ text: 'efgh', nextOffset: 8, lossy: false })
    expect(reader.readBytes(1)).toEqual({ bytes: Buffer.from('efgh'), offset: 4, nextOffset: 8, gap: 3 })
    expect(reader.readBytes(6)).toEqual({ bytes: Buffer.from('gh'), offset: 6, nextOffset: 8, gap: 0 })
  })

  test('item 41: an offset outside the stream is clamped', async () => {
    const { spawn } = openCase()
    const handle = spawn(prints('abcd'), collecting({ maxBytes: 64 }))
    await within('end', handle.done)
    const reader = there(handle.collected.stdout)
    for (const offset of [-1, Number.NEGATIVE_INFINITY, Number.NaN]) {
      expect(reader.readFrom(offset), String(offset)).toEqual({ text: 'abcd', nextOffset: 4, lossy: false })
      expect(reader.readBytes(offset), String(offset)).toEqual({ bytes: Buffer.from('abcd'), offset: 0, nextOffset: 4, gap: 0 })
    }
    for (const offset of [5, 2 ** 53, 1e300, Number.POSITIVE_INFINITY]) {
      expect(reader.readFrom(offset), String(offset)).toEqual({ text: '', nextOffset: 4, lossy: false })
      expect(reader.readBytes(offset), String(offset)).toEqual({ bytes: Buffer.alloc(0), offset: 4, nextOffset: 4, gap: 0 })
    }
    expect(reader.readFrom(1.5).text).toBe('bcd')
  })

  test.each(['stdout', 'stderr'] as const)(
    'item 42, O12: characters of %s that arrive in pieces are whole, and bytes that are none are replaced once',
    async (name) => {
      const { spawn } = openCase()
      const redirect = name === 'stderr' ? 'exec >&2; ' : ''
      const handle = spawn(
        shell(`${redirect}printf 'a\\342'; read -r go; printf '\\200\\224b'; read -r go; printf '\\377\\000z'`),
        { stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } } },
      )
      const reader = there(handle.collected[name])
      await untilTotal(reader, 2)
      expect(reader.readFrom(0)).toEqual({ text: 'a', nextOffset: 1, lossy: false })
      handle.stdin?.write('go\n')
      await untilTotal(reader, 5)
      expect(reader.readFrom(1)).toEqual({ text: '\u2014b', nextOffset: 5, lossy: false })
      handle.stdin?.end('go\n')
      expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
      expect(reader.readFrom(5)).toEqual({ text: `${REPLACEMENT}\0z`, nextOffset: 8, lossy: false })
      expect(reader.readFrom(0).text).toBe(`a\u2014b${REPLACEMENT}\0z`)
      expect(reader.readBytes(0).bytes.toString('latin1')).toBe('a\xE2\x80\x94b\xFF\0z')
    },
  )

  test('item 42: a tail that begins inside a character begins with the next one', async () => {
    const { spawn } = openCase()
    const handle = spawn(prints('\u20AC'.repeat(10)), collecting({ maxBytes: 8 }))
    await within('end', handle.done)
    expect(there(handle.collected.stdout).readFrom(0)).toEqual({ text: '\u20AC\u20AC', nextOffset: 30, lossy: true })
  })

  test('item 55: a tree is drained and spilled while JavaScript is busy', async () => {
    const { directory, spawn } = openCase()
    const finished = join(directory, 'finished')
    const handle = spawn(
      shell(`head -c 4000000 /dev/zero | tr '\\0' x; echo >"$1"`, finished),
      collecting({ maxBytes: 1_000, spill: { maxBytes: 10_000_000 } }),
    )
    // The pipe takes a fraction of that: without somebody who reads it the program would never get there.
    const bound = Date.now() + 20_000
    while (!existsSync(finished) && Date.now() < bound) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    expect(existsSync(finished)).toBe(true)
    expect(there(handle.collected.stdout).total).toBeGreaterThan(2_000_000)
    await within('end', handle.done)
    const { spillPath } = there(handle.collected.stdout).readFrom(0)
    expect(statSync(spillPath as string).size).toBe(4_000_000)
  })

  test('item 183: a snapshot has the head, the tail, and the exact number of bytes between them', async () => {
    const { spawn } = openCase()
    const handle = spawn(prints('abcdefghij'), collecting({ maxBytes: 3, headBytes: 4 }))
    await within('end', handle.done)
    const snapshot = there(handle.collected.stdout).snapshot()
    expect(snapshot).toEqual({ head: Buffer.from('abcd'), tail: Buffer.from('hij'), total: 10, dropped: 3, sealed: true })
    snapshot.tail.fill('x')
    expect(there(handle.collected.stdout).snapshot().tail.toString()).toBe('hij')
  })

  test('beyond the contract: changed() tells of more bytes, and of the end', async () => {
    const { spawn } = openCase()
    const handle = spawn(shell('printf one; read -r go; printf two; read -r go'), collecting({ maxBytes: 64 }, 'pipe'))
    const reader = there(handle.collected.stdout)
    await untilTotal(reader, 3)
    await within('change behind the present', reader.changed(0))
    const more = reader.changed(3)
    handle.stdin?.write('go\n')
    await within('change', more)
    await untilTotal(reader, 6)
    const end = reader.changed(6)
    expect(reader.sealed).toBe(false)
    handle.stdin?.end('go\n')
    await within('end', end)
    expect(reader).toMatchObject({ sealed: true, total: 6 })
    await within('change after the end', reader.changed(1_000))
  })

  test('O13: the memory of a host is bounded however much is printed', async () => {
    const end = await runHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime()
      const run = async (script) => {
        const handle = runtime.spawn({
          argv: ['sh', '-c', script], cwd: '/', graceMs: 5_000,
          stdio: { stdin: 'ignore', stdout: { maxBytes: 65_536, headBytes: 1_024 }, stderr: 'inherit' },
        })
        return [await handle.done, handle.collected.stdout]
      }
      await run('echo warm')
      gc()
      const before = process.memoryUsage.rss()
      let peak = before
      const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20)
      // One of many lines, one of a single one.
      const results = await Promise.all([
        run('yes 2>/dev/null | head -c 300000000'),
        run('head -c 300000000 /dev/zero | tr "\\\\0" x'),
      ])
      clearInterval(watch)
      report({
        growth: peak - before,
        streams: results.map(([outcome, reader]) => {
          const { head, tail, total, dropped } = reader.snapshot()
          return [outcome.exitCode, head.length, tail.length, total, dropped, head.toString('latin1', 0, 2)]
        }),
      })
      await runtime.dispose()
      `,
      { nodeOptions: ['--expose-gc'] },
    )
    expect(end.exitCode, end.stderr).toBe(0)
    const [report] = end.reports as { growth: number; streams: unknown[] }[]
    const lengths = [0, 1_024, 65_536, 300_000_000, 300_000_000 - 1_024 - 65_536]
    expect(report?.streams).toEqual([
      [...lengths, 'y\n'],
      [...lengths, 'xx'],
    ])
    expect(report?.growth).toBeLessThan(64 * 1_024 * 1_024)
  })

  test('O17: what was captured before a termination stays, file included', async () => {
    const { spawn } = openCase()
    const handle = spawn(
      shell(`echo warn >&2; head -c 5000000 /dev/zero | tr '\\0' x; echo CRITICAL; exec sleep 300`),
      { stdio: { stdin: 'ignore', stdout: { maxBytes: 1_000, spill: { maxBytes: 10_000_000 } }, stderr: { maxBytes: 1_000 } } },
    )
    await untilCollected(handle.collected.stdout, 'CRITICAL\n')
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    const read = there(handle.collected.stdout).readFrom(0)
    expect(read.text.endsWith('xCRITICAL\n')).toBe(true)
    expect(there(handle.collected.stderr).readFrom(0).text).toBe('warn\n')
    expect(readFileSync(read.spillPath as string, 'latin1')).toBe(`${'x'.repeat(5_000_000)}CRITICAL\n`)
  })

  test('O18: a reader that follows a stream has every byte once, and the last lines, too', async () => {
    const { spawn } = openCase()
    const expected = `${Array.from({ length: 2_000 }, (_, index) => `${index + 1}\n`).join('')}LAST\n`
    const follow = async (): Promise<string> => {
      const handle = spawn(shell('seq 1 2000; echo LAST'))
      const reader = there(handle.collected.stdout)
      let [offset, seen, ended] = [0, '', false]
      const done = handle.done.then(() => (ended = true))
      for (;;) {
        // The look at the state comes before the read, so that the last read comes after the end.
        const last = ended
        const read = reader.readFrom(offset)
        expect(read.lossy).toBe(false)
        expect(read.nextOffset).toBeGreaterThanOrEqual(offset)
        seen += read.text
        offset = read.nextOffset
        if (last) return seen
        // An ended stream has changed for good, and the rest is the outcome's.
        await (reader.sealed ? done : Promise.race([reader.changed(offset), done]))
      }
    }
    for (let round = 0; round < 10; round++) {
      const outputs = await within('jobs', Promise.all(Array.from({ length: 20 }, follow)))
      for (const output of outputs) expect(output).toBe(expected)
    }
  })

  test('item 38: readers outlive their runtime', async () => {
    const { runtime, spawn } = openCase()
    const handle = spawn(prints('out', 'err'))
    const ended = spawn(exitsWith(3))
    await within('end', Promise.all([handle.done, ended.done]))
    await within('disposal', runtime.dispose())
    expect(there(handle.collected.stdout).readFrom(0).text).toBe('out')
    expect(there(handle.collected.stderr).readFrom(1).text).toBe('rr')
    expect(there(ended.collected.stdout).readFrom(0)).toEqual({ text: '', nextOffset: 0, lossy: false })
  })
})
