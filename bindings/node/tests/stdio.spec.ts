/**
 * Section D of the contract: what the standard streams are.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { SubprocessErrorMode, SubprocessOutputMode, SubprocessStdinMode, SubprocessStdio } from 'dsh-subprocess'
import { runHost, startHost } from './fixture/host.js'
import { copiesInput, exitsWith, node, prints, printsBytes, READY, shell, sleeps } from './fixture/probe.js'
import { openCase, tiers, WINDOW } from './fixture/runtime.js'
import { nextEvent, readAll, untilClosed, untilCollected, untilRead, within } from './fixture/wait.js'

const MIB = 1024 * 1024
const collect = { maxBytes: WINDOW }

/** The three dispositions, where a test says nothing else of one: no input, collected output. */
function stdio(changes: Partial<SubprocessStdio>): { stdio: SubprocessStdio } {
  return { stdio: { stdin: 'ignore', stdout: collect, stderr: collect, ...changes } }
}

/**
 * Writes until a write fails, and resolves with its error. The host closes its own copy of the child's end once the child runs, which may
 * be a moment after the child closed its own; a write in between is taken.
 */
async function refusedWrite(stdin: Writable): Promise<Error> {
  for (;;) {
    const error = await new Promise<Error | null | undefined>((resolve) => stdin.write('x', resolve))
    if (error) return error
  }
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe.each(tiers)('on %s', (ownership) => {
  test("item 30: stdin 'ignore' is the null device, and its end is there at once", async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('test -c /dev/stdin && readlink /proc/self/fd/0 && cat && echo end'))
    expect(handle.stdin).toBeUndefined()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe('/dev/null\nend\n')
  })

  test('item 31: data is read from a socket on descriptor 0, then comes the end', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('test -S /dev/stdin && echo socket; cat; echo end'), stdio({ stdin: { data: 'line\n' } }))
    expect(handle.stdin).toBeUndefined()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe('socket\nline\nend\n')
  })

  test.each([1, 8])('item 32: a child that does not read its %d MiB of data ends as it wants to', async (size) => {
    const of = openCase({ ownership })
    const data = new Uint8Array(size * MIB)
    for (const argv of [exitsWith(3), shell('exec <&-; exit 3'), shell('head -c 1 >/dev/null; exit 3')]) {
      const handle = of.spawn(argv, stdio({ stdin: { data } }))
      expect(await within('outcome', handle.done)).toEqual({ exitCode: 3, signal: null })
    }
  })

  test('item 33: raw streams are streams of Node.js, and their chunks are bytes', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('cat; printf "\\377\\376\\000" >&2'), stdio({ stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' }))
    expect(handle.stdin).toBeInstanceOf(Writable)
    expect(handle.stdout).toBeInstanceOf(Readable)
    expect(handle.stderr).toBeInstanceOf(Readable)
    const bytes = randomBytes(100_000)
    handle.stdin?.end(bytes)
    const [out, err] = await Promise.all([readAll(handle.stdout), readAll(handle.stderr)])
    expect(digest(out)).toBe(digest(bytes))
    expect(err).toEqual(Buffer.from([0xff, 0xfe, 0x00]))
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  })

  test("item 34: 'inherit' is the host's own descriptor, and neither a stream nor a reader is there", async () => {
    const host = startHost(
      `
      import { readlinkSync } from 'node:fs'
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime({ ownership: process.argv[1] })
      const handle = runtime.spawn({
        argv: ['sh', '-c', 'read -r line; echo "out $line"; echo "err $line" >&2; for n in 0 1 2; do readlink /proc/$$/fd/$n; done'],
        cwd: '/', graceMs: 1000, stdio: { stdin: 'inherit', stdout: 'inherit', stderr: 'inherit' },
      })
      report({
        absent: [handle.stdin, handle.stdout, handle.stderr].every((stream) => stream === undefined),
        collected: Object.keys(handle.collected),
        own: [0, 1, 2].map((descriptor) => readlinkSync('/proc/self/fd/' + descriptor)),
        outcome: await handle.done,
      })
      await runtime.dispose()
      `,
      { args: [ownership] },
    )
    host.send('typed')
    const report = (await host.next()) as { own: string[] }
    host.endInput()
    const end = await within('end of the host', host.ended)
    expect(report).toMatchObject({ absent: true, collected: [], outcome: { exitCode: 0, signal: null } })
    expect(end.stdout).toBe(['out typed', ...report.own, ''].join('\n'))
    expect(end.stderr).toBe('err typed\n')
    expect(end.exitCode).toBe(0)
  })

  test('item 35: what nobody reads is neither discarded nor waited for, and can be read after the end', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(prints('of stdout', 'of stderr'), stdio({ stdout: 'pipe', stderr: 'pipe' }))
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect((await readAll(handle.stdout)).toString()).toBe('of stdout')
    expect((await readAll(handle.stderr)).toString()).toBe('of stderr')
  })

  test('item 35: whoever listens has everything when done resolves', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(printsBytes(2 * MIB), stdio({ stdout: 'pipe' }))
    let length = 0
    handle.stdout?.on('data', (chunk: Buffer) => (length += chunk.length))
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(length).toBe(2 * MIB)
  })

  test('item 35: a stream that is not read holds the child up, takes no memory, and goes on when it is read', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(
      shell('echo ready; head -c "$1" /dev/zero; echo written >&2', 8 * MIB),
      stdio({ stdout: 'pipe', stderr: collect }),
    )
    expect(await untilRead(handle.stdout, READY)).toBe(READY)
    handle.stdout?.pause()
    // Ten other children run from start to end meanwhile, so the host has had every occasion to read ahead.
    for (let count = 0; count < 10; count += 1) await within('outcome', of.spawn(exitsWith(0)).done)
    expect(handle.collected.stderr?.total).toBe(0)
    expect(handle.stdout?.readableLength).toBeLessThan(MIB)
    expect((await readAll(handle.stdout)).length).toBe(8 * MIB)
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stderr?.readFrom(0).text).toBe('written\n')
  })

  test('item 35: a stream that its consumer destroys is closed for the child', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(['yes'], stdio({ stdout: 'pipe' }))
    await untilRead(handle.stdout, 'y\n')
    handle.stdout?.destroy()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGPIPE' })
  })

  test('item 36: the caps of the two streams are independent', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(prints('0123456789', 'abcdefghij'), stdio({ stdout: { maxBytes: 4 }, stderr: { maxBytes: 20 } }))
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0)).toEqual({ text: '6789', nextOffset: 10, lossy: true })
    expect(handle.collected.stderr?.readFrom(0)).toEqual({ text: 'abcdefghij', nextOffset: 10, lossy: false })
  })

  test('item 36: one stream is raw and the other collected, and a server that floods its stderr answers (O30)', async () => {
    const of = openCase({ ownership })
    const server = node(
      `require('node:fs').writeSync(2, 'first ')
       process.stderr.write('x'.repeat(${MIB}), () => {
         process.stdin.on('data', (chunk) => process.stdout.write('answer to ' + chunk))
         process.stdin.on('end', () => process.stderr.write(' last'))
       })`,
    )
    const handle = of.spawn(server, stdio({ stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 4_096 } }))
    for (const call of ['one\n', 'two\n', 'three\n']) {
      handle.stdin?.write(call)
      expect(await untilRead(handle.stdout, '\n')).toBe(`answer to ${call}`)
    }
    handle.stdin?.end()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect((await readAll(handle.stdout)).length).toBe(0)
    const read = handle.collected.stderr?.readFrom(0)
    expect(read?.text).toBe('x'.repeat(4_091) + ' last')
    expect(read).toMatchObject({ lossy: true, nextOffset: MIB + 11 })
  })

  test("item 36: 'merge' keeps the order of both streams in one reader (O16)", async () => {
    const of = openCase({ ownership })
    const script = shell('for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done')
    for (let count = 0; count < 20; count += 1) {
      const handle = of.spawn(script, stdio({ stderr: 'merge' }))
      expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
      expect(handle.collected.stdout?.readFrom(0).text).toBe('o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n')
      expect(Object.keys(handle.collected)).toEqual(['stdout'])
      expect(handle.stderr).toBeUndefined()
    }
  })

  test("item 37: a write that nobody will read is an 'error' of the stream, and none of done", async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('exec <&-; echo ready; exec sleep 300'), stdio({ stdin: 'pipe' }))
    await untilCollected(handle.collected.stdout, READY)
    const { stdin } = handle
    if (stdin === undefined) throw new Error('stdin is not piped')
    const failed = nextEvent(stdin, 'error')
    expect(await within('failed write', refusedWrite(stdin))).toMatchObject({ code: 'EPIPE' })
    expect(await failed).toMatchObject({ code: 'EPIPE' })
    expect(await handle.waitForExit(AbortSignal.abort())).toBe(false)
    handle.terminate()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('O20: 8 MiB go in and come out the same, by data and by pipe', async () => {
    const of = openCase({ ownership })
    const data = randomBytes(8 * MIB)
    const window = { maxBytes: 8 * MIB }
    const given = of.spawn(copiesInput(), stdio({ stdin: { data }, stdout: window }))
    const piped = of.spawn(copiesInput(), stdio({ stdin: 'pipe', stdout: 'pipe' }))
    piped.stdin?.end(data)
    expect(digest(await readAll(piped.stdout))).toBe(digest(data))
    expect(await within('outcomes', Promise.all([given.done, piped.done]))).toEqual([
      { exitCode: 0, signal: null },
      { exitCode: 0, signal: null },
    ])
    const read = given.collected.stdout?.readBytes(0)
    expect(read).toMatchObject({ offset: 0, nextOffset: 8 * MIB, gap: 0 })
    expect(digest(read?.bytes ?? Buffer.alloc(0))).toBe(digest(data))
  })

  test.each<[string, string[]]>([
    ['has read all of it', shell('cat >/dev/null; echo ready; exec sleep 300')],
    ['reads none of it', sleeps()],
  ])('O20: a child that %s is terminated whatever is left to write', async (_, argv) => {
    const of = openCase({ ownership })
    const data = Buffer.alloc(8 * MIB)
    const given = of.spawn(argv, stdio({ stdin: { data } }))
    const piped = of.spawn(argv, stdio({ stdin: 'pipe' }))
    piped.stdin?.end(data)
    for (const handle of [given, piped]) {
      await untilCollected(handle.collected.stdout, READY)
      handle.terminate()
      expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    }
    const { stdin } = piped
    await untilClosed(stdin)
    expect(stdin?.destroyed).toBe(true)
  })
})

describe('item 31: data', () => {
  test.each<[string, string | Uint8Array, Uint8Array]>([
    ['none', '', Buffer.alloc(0)],
    ['no bytes', new Uint8Array(0), Buffer.alloc(0)],
    ['text', 'a—b\0ü', Buffer.from('a—b\0ü', 'utf8')],
    ['bytes', Uint8Array.of(0xff, 0, 0xfe), Uint8Array.of(0xff, 0, 0xfe)],
    ['a part of a larger buffer', new Uint8Array(Uint8Array.of(1, 2, 3, 4, 5).buffer, 1, 3), Uint8Array.of(2, 3, 4)],
  ])('item 31: %s arrives byte for byte', async (_, data, expected) => {
    const of = openCase()
    const handle = of.spawn(copiesInput(), stdio({ stdin: { data } }))
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readBytes(0).bytes).toEqual(Buffer.from(expected))
  })

  test('item 31: the bytes are those of the call, whatever their owner does to them afterwards', async () => {
    const of = openCase()
    const data = Buffer.alloc(2 * MIB, 'a')
    const handle = of.spawn(copiesInput(), stdio({ stdin: { data }, stdout: { maxBytes: data.length } }))
    data.fill('b')
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    const bytes = handle.collected.stdout?.readBytes(0).bytes
    expect(bytes?.length).toBe(data.length)
    expect(bytes?.includes('b')).toBe(false)
  })
})

const stdinModes: SubprocessStdinMode[] = ['ignore', 'pipe', { data: 'x' }]
const outputModes: SubprocessOutputMode[] = ['pipe', collect]
const errorModes: SubprocessErrorMode[] = ['pipe', collect, 'merge']

test.each(stdinModes.flatMap((stdin) => outputModes.flatMap((stdout) => errorModes.map((stderr) => ({ stdin, stdout, stderr })))))(
  'item 33: a stream is there where it is piped, and a reader where it is collected: %j',
  async (modes) => {
    const of = openCase()
    const handle = of.spawn(exitsWith(0), { stdio: modes })
    for (const name of ['stdin', 'stdout', 'stderr'] as const) {
      const stream = handle[name]
      expect(stream === undefined).toBe(modes[name] !== 'pipe')
      expect(handle[name]).toBe(stream)
    }
    for (const name of ['stdout', 'stderr'] as const) {
      expect(name in handle.collected).toBe(modes[name] === collect)
    }
    handle.stdin?.end()
    handle.stdout?.resume()
    handle.stderr?.resume()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
    for (const name of ['stdin', 'stdout', 'stderr'] as const) expect(handle[name] === undefined).toBe(modes[name] !== 'pipe')
  },
)

test("item 33: ending a piped stdin is the end of the child's input", async () => {
  const of = openCase()
  const handle = of.spawn(shell('cat; echo end'), stdio({ stdin: 'pipe' }))
  const { stdin } = handle
  if (stdin === undefined) throw new Error('stdin is not piped')
  await new Promise((resolve) => stdin.write('one ', resolve))
  expect(await untilCollected(handle.collected.stdout, 'one ')).toBe('one ')
  stdin.end('two ')
  await within('end of the writing', once(stdin, 'finish'))
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  expect(handle.collected.stdout?.readFrom(0).text).toBe('one two end\n')
})

test('item 33: a piped stdin has backpressure', async () => {
  const of = openCase()
  const handle = of.spawn(shell('echo ready; wc -c'), stdio({ stdin: 'pipe' }))
  const { stdin } = handle
  if (stdin === undefined) throw new Error('stdin is not piped')
  await untilCollected(handle.collected.stdout, READY)
  const drained = nextEvent(stdin, 'drain')
  expect(stdin.write(Buffer.alloc(4 * MIB))).toBe(false)
  await drained
  stdin.end()
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  expect(handle.collected.stdout?.readFrom(READY.length).text.trim()).toBe(String(4 * MIB))
})

test('item 33: a raw stream that is first looked at after the end of the tree is whole', async () => {
  const of = openCase()
  const handle = of.spawn(shell('echo early; cat'), stdio({ stdin: 'pipe', stdout: 'pipe' }))
  handle.stdin?.end('late')
  expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  expect((await readAll(handle.stdout)).toString()).toBe('early\nlate')
  const { stdin } = of.spawn(exitsWith(0), stdio({ stdin: 'pipe' }))
  expect(stdin).toBeInstanceOf(Writable)
})

test('item 35: a raw stream takes a decoder of its consumer, and cuts no character in two', async () => {
  const of = openCase()
  const handle = of.spawn(
    node(`for (const byte of Buffer.from('a—b')) require('node:fs').writeSync(1, Uint8Array.of(byte))`),
    stdio({ stdout: 'pipe' }),
  )
  const text = await within('end of the output', (async () => {
    let seen = ''
    for await (const chunk of handle.stdout?.setEncoding('utf8') ?? []) seen += chunk as string
    return seen
  })())
  expect(text).toBe('a—b')
})

test('item 37: a host that does not listen for the error of stdin lives on', async () => {
  const host = await runHost(`
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const collect = { maxBytes: 64 }
    const handle = runtime.spawn({
      argv: ['sh', '-c', 'exec <&-; echo ready; exec sleep 300'], cwd: '/', graceMs: 1000,
      stdio: { stdin: 'pipe', stdout: collect, stderr: collect },
    })
    await handle.collected.stdout.changed(0)
    let failed
    // The first may still be taken: see refusedWrite.
    while (!failed) failed = await new Promise((resolve) => handle.stdin.write('x', resolve))
    report(failed.code)
    handle.terminate()
    report(await handle.done)
    await runtime.dispose()
  `)
  expect(host).toMatchObject({ exitCode: 0, signal: null, stderr: '' })
  expect(host.reports).toEqual(['EPIPE', { exitCode: null, signal: 'SIGTERM' }])
})

test('item 37: a host that leaves its end of stdin open does not hold anything up', async () => {
  const of = openCase()
  const handle = of.spawn(exitsWith(5), stdio({ stdin: 'pipe' }))
  const { stdin } = handle
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 5, signal: null })
  await untilClosed(stdin)
  expect(stdin?.destroyed).toBe(true)
})
