/**
 * Section E of the contract: the window of an {@link OutputCollector}. Its file is in collector-file.spec.ts, what trees collect in
 * readers.spec.ts.
 */
import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { OutputCollector } from 'dsh-subprocess'
import { pattern, sequence } from './fixture/bytes.js'
import { runHost } from './fixture/host.js'
import { temporaryDirectory } from './fixture/runtime.js'

/** What no decoder may invent. */
const REPLACEMENT = '\uFFFD'

describe('the window of a collector', () => {
  test('item 38: reads go by the offset in the whole stream, consume nothing, and work before and after the end', () => {
    const collector = new OutputCollector(64, undefined, 'stdout')
    collector.push(Buffer.from('one '))
    const first = collector.readFrom(0)
    expect(first).toEqual({ text: 'one ', nextOffset: 4, lossy: false })
    expect(collector.readFrom(0)).toEqual(first)
    collector.push(Buffer.from('two '))
    expect(collector.readFrom(first.nextOffset).text).toBe('two ')
    expect(collector.readFrom(2).text).toBe('e two ')
    collector.seal()
    expect(collector.readFrom(0).text).toBe('one two ')
    expect(collector.readFrom(first.nextOffset).text).toBe('two ')
  })

  test.each([1, 7, 1_000, 2_048])(
    'item 39: the last %i bytes are retained exactly, however the stream was chunked',
    (maxBytes) => {
      const stream = pattern(3_000)
      for (const largest of [1, 3, 500, 3_000]) {
        const next = sequence(largest)
        const collector = new OutputCollector(maxBytes, undefined, 'stdout')
        for (let at = 0; at < stream.length; ) {
          const chunk = stream.subarray(at, at + 1 + next(largest))
          collector.push(chunk)
          at += chunk.length
          const { tail, total } = collector.snapshot()
          const exact = total === at && tail.equals(stream.subarray(Math.max(0, at - maxBytes), at))
          expect(exact, `after ${at} bytes in chunks of at most ${largest}`).toBe(true)
        }
      }
    },
  )

  test('item 39: output of exactly the bound is not truncated and makes no file', () => {
    const directory = temporaryDirectory()
    const collector = new OutputCollector(8, 1_024, 'stdout', directory)
    collector.push(Buffer.from('1234'))
    collector.push(Buffer.from('5678'))
    expect(readdirSync(directory)).toEqual([])
    expect(collector.finalize()).toEqual({ text: '12345678', truncated: false })
    expect(readdirSync(directory)).toEqual([])
  })

  test('item 39: a bound of 0 retains nothing, and counts', () => {
    const collector = new OutputCollector(0, undefined, 'stdout')
    collector.push(Buffer.from('gone'))
    expect(collector.readFrom(0)).toEqual({ text: '', nextOffset: 4, lossy: true })
    expect(collector.readFrom(4)).toEqual({ text: '', nextOffset: 4, lossy: false })
  })

  test('item 40: a read whose offset is no longer retained is lossy, and gives all that is', () => {
    const collector = new OutputCollector(4, undefined, 'stdout')
    collector.push(Buffer.from('abcdefgh'))
    expect(collector.readFrom(3)).toEqual({ text: 'efgh', nextOffset: 8, lossy: true })
    expect(collector.readFrom(4)).toEqual({ text: 'efgh', nextOffset: 8, lossy: false })
    expect(collector.readFrom(6)).toEqual({ text: 'gh', nextOffset: 8, lossy: false })
    expect(collector.readFrom(8)).toEqual({ text: '', nextOffset: 8, lossy: false })
  })

  test('item 41: an offset outside the stream is clamped', () => {
    const collector = new OutputCollector(64, undefined, 'stdout')
    collector.push(Buffer.from('abcd'))
    const whole = { text: 'abcd', nextOffset: 4, lossy: false }
    for (const offset of [-1, -0.5, Number.NEGATIVE_INFINITY, Number.NaN]) {
      expect(collector.readFrom(offset), String(offset)).toEqual(whole)
    }
    for (const offset of [5, 2 ** 53, 1e300, Number.POSITIVE_INFINITY]) {
      expect(collector.readFrom(offset), String(offset)).toEqual({ text: '', nextOffset: 4, lossy: false })
    }
    expect(collector.readFrom(2.9).text).toBe('cd')
  })

  test('item 41: a negative offset is lossy where the beginning is lost, and only there', () => {
    const collector = new OutputCollector(4, undefined, 'stdout')
    collector.push(Buffer.from('abcd'))
    expect(collector.readFrom(-5).lossy).toBe(false)
    collector.push(Buffer.from('e'))
    expect(collector.readFrom(-5)).toEqual({ text: 'bcde', nextOffset: 5, lossy: true })
  })

  test('item 42: a character that arrives in pieces is held back until it is complete', () => {
    const text = 'a\u00E9\u20AC\u{1F600}z'
    const bytes = Buffer.from(text)
    const collector = new OutputCollector(64, undefined, 'stdout')
    let [offset, seen] = [0, '']
    for (const byte of bytes) {
      collector.push(Uint8Array.of(byte))
      const read = collector.readFrom(offset)
      expect(read.text).not.toContain(REPLACEMENT)
      seen += read.text
      offset = read.nextOffset
    }
    expect(seen).toBe(text)
    expect(offset).toBe(bytes.length)
  })

  test('item 42: a tail that begins inside a character begins with the next one', () => {
    const collector = new OutputCollector(8, undefined, 'stdout')
    collector.push(Buffer.from('\u20AC'.repeat(10)))
    expect(collector.readFrom(0)).toEqual({ text: '\u20AC\u20AC', nextOffset: 30, lossy: true })
    expect(collector.finalize().text).toBe('\u20AC\u20AC')
  })

  test('item 42: what is incomplete at the end is replaced once, and then the stream is read to its end', () => {
    const collector = new OutputCollector(64, undefined, 'stdout')
    collector.push(Uint8Array.of(0x61, 0xe2, 0x82))
    expect(collector.readFrom(0)).toEqual({ text: 'a', nextOffset: 1, lossy: false })
    collector.seal()
    expect(collector.readFrom(0)).toEqual({ text: `a${REPLACEMENT}`, nextOffset: 3, lossy: false })
    expect(collector.readFrom(1)).toEqual({ text: REPLACEMENT, nextOffset: 3, lossy: false })
  })

  test('item 43: the batch is truncated exactly where the read from the beginning is lossy', () => {
    for (const length of [0, 3, 4, 5, 400]) {
      const collector = new OutputCollector(4, undefined, 'stdout')
      collector.push(Buffer.alloc(length, 'x'))
      const batch = collector.finalize()
      const read = collector.readFrom(0)
      expect(batch.truncated, `${length} bytes`).toBe(length > 4)
      expect(read.lossy).toBe(batch.truncated)
      expect(read.text).toBe(batch.text)
    }
  })

  test('item 54: memory is bounded by the window, whatever the chunks', async () => {
    const end = await runHost(
      `
      import { OutputCollector } from 'dsh-subprocess'
      const collector = new OutputCollector(1 << 18, undefined, 'stdout')
      const chunk = Buffer.from('x')
      collector.push(chunk)
      gc()
      const before = process.memoryUsage.rss()
      for (let pushed = 1; pushed < 500_000; pushed++) collector.push(chunk)
      gc()
      const { tail, total } = collector.snapshot()
      report({ growth: process.memoryUsage.rss() - before, tail: tail.length, total })
      `,
      { nodeOptions: ['--expose-gc'] },
    )
    expect(end.exitCode, end.stderr).toBe(0)
    const [report] = end.reports as { growth: number; tail: number; total: number }[]
    expect(report).toMatchObject({ tail: 1 << 18, total: 500_000 })
    expect(report?.growth).toBeLessThan(48 * 1_024 * 1_024)
  })

  test('item 183: a snapshot is a copy of what is retained, with the total', () => {
    const collector = new OutputCollector(4, undefined, 'stdout')
    collector.push(Buffer.from('abcdef'))
    const snapshot = collector.snapshot()
    expect(snapshot).toMatchObject({ total: 6, dropped: 2, sealed: false })
    expect(snapshot.tail.toString()).toBe('cdef')
    snapshot.tail.fill('x')
    collector.push(Buffer.from('g'))
    expect(snapshot).toMatchObject({ total: 6 })
    expect(collector.snapshot().tail.toString()).toBe('defg')
    collector.seal()
    expect(collector.snapshot().sealed).toBe(true)
  })
})
