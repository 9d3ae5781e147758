/**
 * Section C of the contract: what is refused before anything starts, how a spawn fails, and what a child starts with.
 *
 * Not here, and why: of item 28a, how long the call takes in a large host is measured (`cargo xtask bench node`), never asserted. Of O27, a
 * directory whose name is no UTF-8: strings of JavaScript cannot name it.
 */
import { getEventListeners } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  LocalSubprocessRuntime,
  MAX_TIMER_DELAY_MS,
  spawnSubprocess,
  SubprocessError,
  type SubprocessHandle,
  type SubprocessSpawnSpec,
} from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { exitsWith, READY, shell, sleeps } from './fixture/probe.js'
import {
  isRoot,
  openCase,
  openDescriptors,
  temporaryDirectory,
  tiers,
  untilGone,
  untilNoDescriptorLeaks,
} from './fixture/runtime.js'
import { rejection, thrown, untilClosed, untilCollected, within } from './fixture/wait.js'

const GRACE = 'subprocess graceMs must be a positive finite number no greater than 2147483647'
const ARGV = 'invalid argv: expected a non-empty program name at argv[0]'

/** Whatever a caller without types may say. */
type Untyped = Record<string, unknown>

/** Runs a spawn to its end and returns what it printed. */
async function output(handle: SubprocessHandle): Promise<string> {
  const outcome = await within('outcome', handle.done)
  expect(outcome, handle.collected.stderr?.readFrom(0).text ?? '').toEqual({ exitCode: 0, signal: null })
  return handle.collected.stdout?.readFrom(0).text ?? ''
}

/** Expects a spawn to have failed as a failed spawn does, and returns its error. */
async function failure(handle: SubprocessHandle): Promise<SubprocessError> {
  const error = await rejection(handle.done)
  expect(error).toBeInstanceOf(SubprocessError)
  expect(handle.pid).toBe(-1)
  expect(await within('answer', handle.waitForExit())).toBe(true)
  expect(handle.terminate()).toBeUndefined()
  expect(await rejection(handle.started)).toEqual(error)
  expect(await rejection(handle.exited)).toEqual(error)
  expect(await within('answer', handle.waitForExit(AbortSignal.abort()))).toBe(true)
  return error as SubprocessError
}

/** Writes a file that is to be run. */
function program(path: string, text: string, mode = 0o755): string {
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

describe('what is refused before anything starts', () => {
  test.each([0, -1, -0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2_147_483_648, '5', null, undefined, 5n])(
    'item 18: graceMs is positive, finite and at most the largest delay of a timer: %s',
    (graceMs) => {
      const of = openCase()
      const spec = { ...of.spec(sleeps()), graceMs } as unknown as SubprocessSpawnSpec
      const reason = thrown(() => of.runtime.spawn(spec))
      expect(reason).toBeInstanceOf(Error)
      expect((reason as Error).message).toBe(GRACE)
      expect(of.processes()).toEqual([])
    },
  )

  test.each([Number.MIN_VALUE, 0.5, 1, MAX_TIMER_DELAY_MS])('item 18: %d is a grace', async (graceMs) => {
    const of = openCase()
    expect(await within('outcome', of.spawn(exitsWith(3), { graceMs }).done)).toEqual({ exitCode: 3, signal: null })
  })

  test.each([-1, Number.NaN, 2_147_483_648])('item 18: a drainMs of %d is refused, and named', (drainMs) => {
    const of = openCase()
    expect((thrown(() => of.spawn(sleeps(), { drainMs })) as Error).message).toContain('drainMs')
    expect(of.processes()).toEqual([])
  })

  test.each([
    ['a text', 'stop', 'aborted before spawn: stop'],
    ['an error', new Error('out of time'), 'aborted before spawn: Error: out of time'],
    ['a number', 7, 'aborted before spawn: 7'],
  ])('item 19: a signal that has aborted is refused with its reason: %s', (_, reason, message) => {
    const of = openCase()
    const signal = AbortSignal.abort(reason)
    expect((thrown(() => of.spawn(sleeps(), { signal })) as Error).message).toBe(message)
    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(of.processes()).toEqual([])
  })

  test('item 19: a signal without a reason says that it was aborted', () => {
    const of = openCase()
    const signal = AbortSignal.abort()
    expect((thrown(() => of.spawn(sleeps(), { signal })) as Error).message).toBe(
      `aborted before spawn: ${String(signal.reason)}`,
    )
    Object.defineProperty(signal, 'reason', { value: undefined })
    expect((thrown(() => of.spawn(sleeps(), { signal })) as Error).message).toBe('aborted before spawn: aborted')
  })

  test('item 19: the grace is looked at first, then the signal, then the argv', () => {
    const of = openCase()
    const signal = AbortSignal.abort('stop')
    const all = { graceMs: 0, signal, argv: [], cwd: '\0' }
    expect((thrown(() => of.spawn([], all)) as Error).message).toBe(GRACE)
    expect((thrown(() => of.spawn([], { ...all, graceMs: 1 })) as Error).message).toBe('aborted before spawn: stop')
    expect((thrown(() => of.spawn([], { argv: [], cwd: '\0' })) as Error).message).toBe(ARGV)
  })

  test.each([[[]], [['']], [['', 'argument']]])('item 20: an argv without a program is refused: %j', (argv) => {
    const of = openCase()
    expect((thrown(() => of.spawn(argv)) as Error).message).toBe(ARGV)
    expect(of.processes()).toEqual([])
  })

  test.each([[[7]], [['sh', 7]], [['sh', undefined]], [['sh', null]], [[{}]]])(
    'item 20: an argument that is no string is refused: %j',
    (argv) => {
      const of = openCase()
      expect(thrown(() => of.spawn(argv as string[]))).toBeInstanceOf(Error)
      expect(of.processes()).toEqual([])
    },
  )

  test.each<[string, Untyped]>([
    ['an unknown word for stdin', { stdin: 'pipes' }],
    ['stdin without data', { stdin: {} }],
    ['data of stdin that is no bytes', { stdin: { data: 7 } }],
    ['an unknown word for stdout', { stdout: 'ignore' }],
    ['stdout merged into itself', { stdout: 'merge' }],
    ['an unknown word for stderr', { stderr: 'piped' }],
    ['no stdout', { stdout: undefined }],
    ['a negative maxBytes', { stdout: { maxBytes: -1 } }],
    ['a fractional maxBytes', { stdout: { maxBytes: 1.5 } }],
    ['an unsafe maxBytes', { stderr: { maxBytes: 2 ** 53 } }],
    ['a maxBytes that is no number', { stderr: { maxBytes: '64' } }],
    ['a maxBytes that is not there', { stderr: {} }],
    ['a negative headBytes', { stdout: { maxBytes: 1, headBytes: -1 } }],
    ['a spill of 0 bytes', { stdout: { maxBytes: 1, spill: { maxBytes: 0 } } }],
    ['a spill without a size', { stdout: { maxBytes: 1, spill: {} } }],
    ['an endless spill', { stdout: { maxBytes: 1, spill: { maxBytes: Number.POSITIVE_INFINITY } } }],
    ['an unknown life of a spill', { stdout: { maxBytes: 1, spill: { maxBytes: 9, life: 'forever' } } }],
  ])('item 18: what is of the wrong shape is refused at once: %s', (_, stdio) => {
    const of = openCase()
    const spec = of.spec(sleeps())
    const wrong = { ...spec, stdio: { ...spec.stdio, ...stdio } } as unknown as SubprocessSpawnSpec
    expect(thrown(() => of.runtime.spawn(wrong))).toBeInstanceOf(TypeError)
    expect(of.processes()).toEqual([])
  })

  test.each<[string, Partial<SubprocessSpawnSpec>, string]>([
    ['the program', { argv: ['true\0'] }, 'argv[0]'],
    ['an argument', { argv: ['true', 'one', 'two\0'] }, 'argv[2]'],
    ['the directory', { cwd: '/tmp\0' }, 'cwd'],
    ['the name of a variable', { env: { 'NAME\0': 'value' } }, 'NAME'],
    ['the value of a variable', { env: { NAME: 'value\0' } }, 'NAME'],
  ])('item 24: a NUL byte is refused at once, and the text says where it is: in %s', (_, changes, where) => {
    const of = openCase()
    const reason = thrown(() => of.spawn(['true'], changes))
    expect(reason).toMatchObject({ kind: 'InvalidSpec', message: expect.stringContaining(where) as string })
    expect((reason as Error).message).toContain('NUL')
  })

  test.each([[''], [7], [undefined]])('item 24: a directory without a name is refused: %j', (cwd) => {
    const of = openCase()
    expect(thrown(() => of.runtime.spawn({ ...of.spec(sleeps()), cwd } as SubprocessSpawnSpec))).toBeInstanceOf(Error)
    expect(of.processes()).toEqual([])
  })

  test('item 29: nothing is spawned by a runtime that is disposed of, nor while it is', async () => {
    const of = openCase()
    const running = of.spawn(sleeps())
    await untilCollected(running.collected.stdout, READY)
    const disposal = of.runtime.dispose()
    expect(thrown(() => of.spawn(sleeps()))).toMatchObject({ kind: 'Disposed' })
    await within('end of the disposal', disposal)
    const reason = thrown(() => of.spawn(sleeps()))
    expect(reason).toBeInstanceOf(SubprocessError)
    expect(reason).toMatchObject({ kind: 'Disposed', mayHaveStarted: 'no' })
    expect(of.processes()).toEqual([])
  })
})

describe.each(tiers)('on %s', (ownership) => {
  test('item 21: no shell interprets the argv', async () => {
    const of = openCase({ ownership })
    const words = ['$HOME', '`id`', '*', 'a b', '"', "'", ';', '&&', '>file', '\\', '', 'line\nend', '—', '-n']
    const handle = of.spawn(['sh', '-c', 'for word; do printf "%s\\0" "$word"; done', 'sh', ...words])
    expect((await output(handle)).split('\0')).toEqual([...words, ''])
  })

  test('item 22: a live handle is there at once, and its child is the one that it names', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('echo $$; echo ready; exec sleep 300'))
    expect(handle.pid).toBeGreaterThan(1)
    expect(await within('start', handle.started)).toBe(handle.pid)
    expect(await untilCollected(handle.collected.stdout, READY)).toBe(`${handle.pid}\nready\n`)
    expect(await handle.waitForExit(AbortSignal.abort())).toBe(false)
    handle.terminate()
    expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(await within('outcome', handle.exited)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  })

  test('item 22: a program that is nowhere on PATH is told by done, as Node.js tells it', async () => {
    const of = openCase({ ownership })
    // A directory on PATH that this user may not search would make it EACCES.
    const env = { PATH: '/usr/bin:/bin' }
    const error = await failure(of.spawn(['no-such-program-anywhere', 'one', 'two'], { env }))
    expect(error).toMatchObject({
      kind: 'ProgramNotFound',
      code: 'ENOENT',
      errno: -2,
      syscall: 'spawn no-such-program-anywhere',
      path: 'no-such-program-anywhere',
      spawnargs: ['one', 'two'],
      mayHaveStarted: 'no',
    })
    expect(error.message).toMatch(/^spawn no-such-program-anywhere ENOENT: /)
    expect(of.processes()).toEqual([])
  })

  test('item 23: programs that cannot run say why', async () => {
    const of = openCase({ ownership })
    const at = (name: string): string => join(of.directory, name)
    const looped = at('loop')
    symlinkSync(looped, looped)
    const refused: [path: string, kind: string, code: string][] = [
      [at('missing'), 'ProgramNotFound', 'ENOENT'],
      [program(at('plain'), 'text', 0o644), 'ProgramNotExecutable', 'EACCES'],
      [of.directory, 'ProgramNotExecutable', 'EACCES'],
      [program(at('shebang'), '#!/nonexistent/interpreter\n'), 'InterpreterNotFound', 'ENOENT'],
      [`${program(at('other'), '')}/below`, 'ProgramNotFound', 'ENOTDIR'],
      [looped, 'PathUnresolvable', 'ELOOP'],
      [`/${'x'.repeat(5_000)}`, 'PathUnresolvable', 'ENAMETOOLONG'],
    ]
    for (const [path, kind, code] of refused) {
      const error = await failure(of.spawn([path]))
      expect(error).toMatchObject({ kind, code, syscall: `spawn ${path}`, path, spawnargs: [] })
    }
  })

  test('item 23: a bad directory is told apart from a bad program (O27)', async () => {
    const of = openCase({ ownership })
    const plain = program(join(of.directory, 'plain'), '', 0o644)
    const missing = join(of.directory, 'missing')
    const refused: [cwd: string, kind: string, code: string][] = [
      [missing, 'CwdNotFound', 'ENOENT'],
      [plain, 'CwdNotDirectory', 'ENOTDIR'],
      [join(plain, 'below'), 'CwdNotDirectory', 'ENOTDIR'],
    ]
    for (const [cwd, kind, code] of refused) {
      for (const argv of [['true'], ['/bin/sh', '-c', ':'], ['no-such-program-anywhere']]) {
        const error = await failure(of.spawn(argv, { cwd }))
        expect(error).toMatchObject({ kind, code, syscall: 'chdir', path: cwd })
        expect(error.message).toMatch(new RegExp(`^chdir ${cwd} ${code}: `))
      }
    }
  })

  test('item 23: a directory that went is told, and the next spawn elsewhere runs (O27)', async () => {
    const of = openCase({ ownership })
    const cwd = join(of.directory, 'removed')
    mkdirSync(cwd)
    rmdirSync(cwd)
    expect(await failure(of.spawn(['pwd'], { cwd }))).toMatchObject({ kind: 'CwdNotFound', path: cwd })
    expect(await output(of.spawn(['pwd']))).toBe(`${of.directory}\n`)
  })

  test('item 24: an argument that is too long is told by done, and named with its size (B3)', async () => {
    const of = openCase({ ownership })
    const error = await failure(of.spawn(['true', 'short', 'x'.repeat(200_000)]))
    expect(error).toMatchObject({ kind: 'ArgumentTooLong', code: 'E2BIG' })
    expect(error.message).toContain('argv[2]')
    expect(error.message).toContain('200000')
    const variable = await failure(of.spawn(['true'], { env: { HUGE: 'x'.repeat(200_000) } }))
    expect(variable).toMatchObject({ kind: 'ArgumentTooLong', code: 'E2BIG' })
    expect(variable.message).toContain('HUGE')
    expect(variable.message).not.toContain('xxxx')
    const many = await failure(of.spawn(['true', ...Array<string>(100).fill('x'.repeat(100_000))]))
    expect(many).toMatchObject({ kind: 'ArgumentTooLong', code: 'E2BIG' })
  })

  test('item 25: without descriptors a spawn fails by done, the host lives, and spawns again (B2)', async () => {
    const host = await runHost(
      `
      import { closeSync, openSync } from 'node:fs'
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime({ ownership: process.argv[1] })
      const spawn = () => runtime.spawn({
        argv: ['true'], cwd: '/', graceMs: 1000,
        stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: 'pipe' },
      })
      const facts = async (handle) => ({
        ...(await handle.done.catch(({ code, kind, message }) => ({ code, kind, message }))),
        pid: handle.pid,
        gone: await handle.waitForExit(),
      })
      report(await facts(spawn()))
      const held = []
      let full
      while (full === undefined) {
        try { held.push(openSync('/dev/null')) } catch (error) { full = error.code }
      }
      report(full)
      report(await facts(spawn()))
      report(await facts(spawn()))
      for (const descriptor of held) closeSync(descriptor)
      report(await facts(spawn()))
      await runtime.dispose()
      `,
      { args: [ownership], through: ['sh', '-c', 'ulimit -n 128; exec "$@"', 'sh'] },
    )
    expect(host).toMatchObject({ exitCode: 0, signal: null, stderr: '' })
    const [before, full, starved, again, after] = host.reports
    const success = { exitCode: 0, signal: null, pid: expect.any(Number) as number, gone: true }
    expect(full).toBe('EMFILE')
    expect(before).toEqual(success)
    for (const report of [starved, again]) {
      expect(report).toMatchObject({ code: 'EMFILE', kind: 'ResourceExhausted', pid: -1, gone: true })
      expect((report as Error).message).toContain('descriptor')
    }
    expect(after).toEqual(success)
  })

  test('item 26: a file of no known format is run by /bin/sh', async () => {
    const of = openCase({ ownership })
    const script = program(join(of.directory, 'script'), 'echo "$0 $1"\nexit 5\n')
    const handle = of.spawn([script, 'argument'])
    expect(await within('outcome', handle.done)).toEqual({ exitCode: 5, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${script} argument\n`)
    const wrong = of.spawn([program(join(of.directory, 'wrong'), 'no-such-program-anywhere\n')])
    expect(await within('outcome', wrong.done)).toEqual({ exitCode: 127, signal: null })
  })

  test("item 27: a bare name is searched on the child's PATH", async () => {
    const of = openCase({ ownership })
    const [first, second] = ['first', 'second'].map((name) => {
      const path = join(of.directory, name)
      mkdirSync(path)
      return path
    }) as [string, string]
    program(join(first, 'tool'), '#!/bin/sh\necho wrong\n', 0o644)
    const PATH = `${first}:${second}`
    // What may not be executed is remembered while the search goes on.
    expect(await failure(of.spawn(['tool'], { env: { PATH } }))).toMatchObject({
      kind: 'ProgramNotExecutable',
      code: 'EACCES',
      path: 'tool',
    })
    program(join(second, 'tool'), '#!/bin/sh\necho right\n')
    expect(await output(of.spawn(['tool'], { env: { PATH } }))).toBe('right\n')
    // A relative entry counts from the child's directory.
    expect(await output(of.spawn(['tool'], { env: { PATH: '.' }, cwd: second }))).toBe('right\n')
    expect(await output(of.spawn(['tool'], { env: { PATH: '' }, cwd: second }))).toBe('right\n')
    // Without a PATH there still is one.
    expect(await output(of.spawn(['true'], { env: { PATH: undefined } }))).toBe('')
  })

  test('item 28: the child leads a session and a process group of its own', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(['cat', '/proc/self/stat'])
    const { pid } = handle
    const [, group, session] = (await output(handle)).replace(/^.*\) . /, '').split(' ').map(Number)
    expect({ group, session }).toEqual({ group: pid, session: pid })
  })

  test('item 28: the child starts with every signal at its default, and none blocked (O28)', async () => {
    // Node.js itself ignores SIGPIPE, so there is something to be undone.
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
    expect(BigInt(`0x${ignored}`) & (1n << 12n)).not.toBe(0n)
    const of = openCase({ ownership })
    const status = await output(of.spawn(['cat', '/proc/self/status']))
    expect(status.match(/^Sig(Blk|Ign|Cgt):\s*\S+$/gm)).toEqual([
      `SigBlk:\t${'0'.repeat(16)}`,
      `SigIgn:\t${'0'.repeat(16)}`,
      `SigCgt:\t${'0'.repeat(16)}`,
    ])
    const pipeline = ['bash', '-c', 'yes | head -n 1; echo "${PIPESTATUS[0]}"']
    expect(await output(of.spawn(pipeline))).toBe('y\n141\n')
  })

  test('item 28: a child gets no descriptor of the host but its own three, not even an inheritable one', async () => {
    const host = await runHost(
      `
      import { readFileSync } from 'node:fs'
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const flags = /flags:\\s*([0-7]+)/.exec(readFileSync('/proc/self/fdinfo/40', 'utf8'))[1]
      report((parseInt(flags, 8) & 0o2000000) === 0)
      const runtime = new LocalSubprocessRuntime({ ownership: process.argv[1] })
      const collect = { maxBytes: 65536 }
      for (const stdin of ['ignore', 'pipe', { data: 'x' }]) {
        const handle = runtime.spawn({
          argv: ['ls', '/proc/self/fd'], cwd: '/', graceMs: 1000, stdio: { stdin, stdout: collect, stderr: collect },
        })
        await handle.done
        report(handle.collected.stdout.readFrom(0).text)
      }
      await runtime.dispose()
      `,
      { args: [ownership], through: ['bash', '-c', 'exec 40</dev/null; exec "$@"', 'bash'] },
    )
    expect(host).toMatchObject({ exitCode: 0, stderr: '' })
    // The fourth is that of the listing itself.
    const four = '0\n1\n2\n3\n'
    expect(host.reports).toEqual([true, four, four, four])
  })

  test('item 28: a child of a host on a terminal cannot reach that terminal (O19)', async () => {
    const host = await runHost(
      `
      import { openSync } from 'node:fs'
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      openSync('/dev/tty', 'r+')
      const runtime = new LocalSubprocessRuntime({ ownership: process.argv[1] })
      const collect = { maxBytes: 65536 }
      const handle = runtime.spawn({
        argv: ['bash', '-c', 'read -r x </dev/tty; echo "$?"'], cwd: '/', graceMs: 1000,
        stdio: { stdin: 'ignore', stdout: collect, stderr: collect },
      })
      report(await handle.done)
      report(handle.collected.stdout.readFrom(0).text)
      report(handle.collected.stderr.readFrom(0).text)
      await runtime.dispose()
      `,
      { args: [ownership], through: ['bash', '-c', 'exec script -qec "${*@Q}" /dev/null', 'bash'], env: { SHELL: '/bin/bash' } },
    )
    const [outcome, stdout, stderr] = host.reports
    expect(outcome, host.stdout).toEqual({ exitCode: 0, signal: null })
    expect(stdout).toBe('1\n')
    expect(stderr).toContain('/dev/tty')
  })

  test('O23: descriptors do not add up, whether spawns run or fail', async () => {
    const of = openCase({ ownership })
    const round = async (): Promise<void> => {
      const running = [
        of.spawn(['true']),
        of.spawn(['true'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } }),
        of.spawn(['true'], { stdio: { stdin: { data: 'x' }, stdout: { maxBytes: 1 }, stderr: 'merge' } }),
      ]
      const touched = of.spawn(['true'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } })
      touched.stdin?.end()
      touched.stdout?.resume()
      touched.stderr?.resume()
      await within('outcomes', Promise.all([...running, touched].map((handle) => handle.done)))
      await failure(of.spawn(['no-such-program-anywhere'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } }))
      await failure(of.spawn(['true'], { cwd: join(of.directory, 'missing') }))
    }
    // What a runtime keeps for the next spawn is there after the first.
    await round()
    const before = openDescriptors()
    for (let count = 0; count < 40; count += 1) await round()
    globalThis.gc?.()
    await untilNoDescriptorLeaks(before)
  })
})

test('item 22: a failed spawn that nobody looks at does not end the host, nor hold it up', async () => {
  const host = await runHost(`
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const stdio = { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 } }
    const handle = runtime.spawn({ argv: ['/nonexistent/program'], cwd: '/', graceMs: 1000, stdio })
    runtime.spawn({ argv: ['/nonexistent/program'], cwd: '/', graceMs: 1000, stdio }).done
    report([handle.pid, typeof handle.stdin, typeof handle.stdout])
  `)
  expect(host).toMatchObject({ exitCode: 0, signal: null, stderr: '', reports: [[-1, 'object', 'object']] })
})

test('item 22: the streams of a failed spawn have ended', async () => {
  const of = openCase()
  const handle = of.spawn(['/nonexistent/program'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 } } })
  await failure(handle)
  const chunks: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const chunk of handle.stdout ?? []) chunks.push(chunk)
  }
  await within('end of the output', read())
  expect(chunks).toEqual([])
  const { stdin } = handle
  await untilClosed(stdin)
  expect(stdin?.writable).toBe(false)
  expect(handle.collected.stderr?.readFrom(0)).toMatchObject({ text: '', nextOffset: 0, lossy: false })
  expect(handle.collected.stderr?.sealed).toBe(true)
})

test('item 22: spawnSubprocess starts a tree without a runtime of the caller', async () => {
  const of = openCase()
  const handle = spawnSubprocess(of.spec(shell('echo "$1"; exit 4', 'shared')))
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 4, signal: null })
  expect(handle.collected.stdout?.readFrom(0).text).toBe('shared\n')
  expect((thrown(() => spawnSubprocess({ ...of.spec(['true']), graceMs: 0 })) as Error).message).toBe(GRACE)
  expect(await failure(spawnSubprocess(of.spec(['/nonexistent/program'])))).toMatchObject({ code: 'ENOENT' })
})

test("item 23: a relative directory counts from the host's own", async () => {
  const of = openCase()
  const cwd = relative(process.cwd(), of.directory)
  expect(await output(of.spawn(['pwd'], { cwd }))).toBe(`${of.directory}\n`)
  const before = process.cwd()
  onTestFinished(() => process.chdir(before))
  process.chdir(of.directory)
  expect(await output(of.spawn(['pwd'], { cwd: '.' }))).toBe(`${of.directory}\n`)
  expect(await failure(of.spawn(['pwd'], { cwd: 'missing' }))).toMatchObject({ kind: 'CwdNotFound', syscall: 'chdir' })
})

test.each(['with space', 'line\nend', '-dash', 'ünïcødé', '$HOME', 'quote"s'])(
  'O27: the child is in the directory it was sent to, whatever its name: %j',
  async (name) => {
    const of = openCase()
    const cwd = join(of.directory, name)
    mkdirSync(cwd)
    expect(await output(of.spawn(['pwd', '-P'], { cwd }))).toBe(`${cwd}\n`)
    expect(await output(of.spawn(shell('printf %s "$PWD"'), { cwd }))).toBe(cwd)
  },
)

test('O27: a directory that may not be entered is named; root may enter every one', async () => {
  const of = openCase()
  const cwd = join(of.directory, 'closed')
  mkdirSync(cwd, { mode: 0o600 })
  const handle = of.spawn(['true'], { cwd })
  if (isRoot) {
    expect(await output(handle)).toBe('')
  } else {
    expect(await failure(handle)).toMatchObject({ kind: 'CwdNotSearchable', code: 'EACCES', syscall: 'chdir', path: cwd })
  }
})

test('O27 (d): a host whose own directory was removed spawns elsewhere as any other', async () => {
  const host = await runHost(
    `
    import { mkdirSync, rmdirSync } from 'node:fs'
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    mkdirSync(process.argv[1])
    process.chdir(process.argv[1])
    rmdirSync(process.argv[1])
    const runtime = new LocalSubprocessRuntime()
    const collect = { maxBytes: 65536 }
    const handle = runtime.spawn({
      argv: ['pwd'], cwd: '/', graceMs: 1000, stdio: { stdin: 'ignore', stdout: collect, stderr: collect },
    })
    report(await handle.done)
    report(handle.collected.stdout.readFrom(0).text)
    report((await runtime.resolveExecutable('sh')).endsWith('/sh'))
    await runtime.dispose()
    `,
    { args: [join(temporaryDirectory(), 'gone')] },
  )
  expect(host).toMatchObject({ exitCode: 0, stderr: '' })
  expect(host.reports).toEqual([{ exitCode: 0, signal: null }, '/\n', true])
})

test('item 28: many spawns at once are as many children, each with its own outcome', async () => {
  const of = openCase()
  const handles = Array.from({ length: 64 }, (_, index) => of.spawn(exitsWith(index)))
  expect(new Set(handles.map((handle) => handle.pid)).size).toBe(64)
  const outcomes = await within('outcomes', Promise.all(handles.map((handle) => handle.done)))
  expect(outcomes.map(({ exitCode }) => exitCode)).toEqual(handles.map((_, index) => index))
  await untilGone(of)
})

test('item 29: another runtime goes on when one is disposed of', async () => {
  const of = openCase()
  const other = new LocalSubprocessRuntime()
  await within('end of the disposal', other.dispose())
  expect(await output(of.spawn(['echo', 'here']))).toBe('here\n')
})
