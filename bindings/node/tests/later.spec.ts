/**
 * Section Q of the contract: what later versions of the reference added, as far as a provider of processes has to do with it.
 *
 * Not here: item 185 (the activity of an interactive shell) and item 187 (the expiry of a shell run) are those of consumers that run
 * shells. What they build on is the foreground of items 91 to 103 in terminal.spec.ts, and the abort signal of item 175.
 */
import crypto from 'node:crypto'
import { getEventListeners, once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  LocalSubprocessRuntime,
  OutputCollector,
  scrubbedParentEnv,
  type LocalSubprocessHandle,
  type SubprocessError,
} from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { leavesStubbornChild, READY, shell, sleeps } from './fixture/probe.js'
import { type Case, isRoot, openCase, temporaryDirectory, tiers, untilGone } from './fixture/runtime.js'
import { readAll, rejection, thrown, until, untilCollected, untilRead, within } from './fixture/wait.js'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

/** Longer than any test: what ends before it did not need it. */
const NEVER_MS = 1_000_000

const textOf = (handle: LocalSubprocessHandle): string | undefined => handle.collected.stdout?.readFrom(0).text

/** The parent of a process. */
function parentOf(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[1])
}

/** Writes a program. */
function program(path: string, text: string, mode = 0o755): string {
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

describe.each(tiers)('owners: %s', (ownership) => {
  test("item 171: the pid that a spawn returns with is the target's own", async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('echo $$'))
    expect(handle.pid).toBeGreaterThan(1)
    await within('end', handle.done)
    expect(textOf(handle)).toBe(`${handle.pid}\n`)
  })

  test('item 174: the owner that was asked for has every tree, and tells what it does not guarantee', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(sleeps())
    const terminal = await of.spawnTerminal(['sleep', '300'])
    for (const owner of [await handle.ownership(), await terminal.ownership(), of.runtime.ownership()]) {
      expect(owner.mechanism).toBe(ownership)
      expect(owner.weaknesses.length).toBeGreaterThan(0)
    }
  })

  test('item 175: an abort after the exit of the target ends what it left', async () => {
    const of = openCase({ ownership })
    const controller = new AbortController()
    const handle = of.spawn(leavesStubbornChild(), { signal: controller.signal, graceMs: 100, drainMs: NEVER_MS })
    await within('end', handle.done)
    expect(of.processes()).not.toEqual([])
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(of.processes()).toEqual([])
    expect(await handle.done).toEqual({ exitCode: 0, signal: null })
  })

  test('item 175: when the tree is gone nobody listens to the signal any more', async () => {
    const of = openCase({ ownership })
    const controller = new AbortController()
    const handles = Array.from({ length: 30 }, () => of.spawn(['true'], { signal: controller.signal }))
    const failed = of.spawn(['no-such-program'], { signal: controller.signal })
    for (const handle of handles) await within('end of the tree', handle.waitForExit())
    await rejection(failed.done)
    await until(() => getEventListeners(controller.signal, 'abort').length === 0, 'end of the listeners')
  })

  test('item 176: an abort before the target runs is SIGTERM, and a failure that came first stays one', async () => {
    const of = openCase({ ownership })
    const [early, late] = [new AbortController(), new AbortController()]
    const handle = of.spawn(sleeps(), { signal: early.signal, graceMs: NEVER_MS })
    early.abort()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })

    const failed = of.spawn(['no-such-program'], { signal: late.signal })
    await rejection(failed.started)
    late.abort()
    expect(await rejection(failed.done)).toMatchObject({ code: 'ENOENT', kind: 'ProgramNotFound' })
  })
})

describe('an owner that fails', () => {
  /** A runtime whose disposal is the test's own affair: it reports what failed. */
  const reaper = (): { of: Case; runtime: LocalSubprocessRuntime } => {
    const runtime = new LocalSubprocessRuntime({ ownership: 'reaper' })
    onTestFinished(() => within('end of the disposal', runtime.dispose().catch(() => {})))
    return { of: openCase(), runtime }
  }
  /** The owner of a tree is the parent of its target. */
  const killOwner = (pid: number): void => {
    process.kill(parentOf(pid), 'SIGKILL')
  }

  test('item 172, item 173: done and every wait reject, the tree is ended, and the command runs once', async () => {
    const { of, runtime } = reaper()
    const handle = runtime.spawn(of.spec(shell('echo ran >>ran; echo ready; exec sleep 300'), { graceMs: NEVER_MS }))
    await untilCollected(handle.collected.stdout, READY)
    killOwner(handle.pid)
    const error = await rejection(handle.done)
    expect(error).toMatchObject({ kind: 'OwnershipLost' })
    expect((error as SubprocessError).mayHaveStarted).toBe('yes')
    await untilGone(of)
    // Whatever is asked again has the same answer, also now that nobody is left.
    for (let turn = 0; turn < 3; turn += 1) expect(await rejection(handle.waitForExit())).toMatchObject({ kind: 'OwnershipLost' })
    expect(readFileSync(join(of.directory, 'ran'), 'utf8')).toBe('ran\n')
    expect(textOf(handle)).toBe(READY)
    // The runtime goes on, with another owner.
    const next = runtime.spawn(of.spec(shell('exit 6')))
    expect(await within('end', next.done)).toEqual({ exitCode: 6, signal: null })
  })

  test('item 172: a terminal whose owner fails says so, and its session ends', async () => {
    const { of, runtime } = reaper()
    const terminal = await runtime.spawnTerminal(of.terminalSpec(shell('echo ready; exec sleep 300'), { graceMs: NEVER_MS }))
    await untilRead(terminal.output, 'ready')
    killOwner(terminal.pid)
    expect(await rejection(terminal.done)).toMatchObject({ kind: 'OwnershipLost' })
    expect(await rejection(terminal.terminate())).toMatchObject({ kind: 'OwnershipLost' })
    await untilGone(of)
  })

  test('item 173: a disposal ends every other tree, and then reports', async () => {
    const { of, runtime } = reaper()
    const [lost, kept] = [runtime.spawn(of.spec(sleeps())), runtime.spawn(of.spec(sleeps()))]
    for (const handle of [lost, kept]) await untilCollected(handle.collected.stdout, READY)
    killOwner(lost.pid)
    await rejection(lost.done)
    expect(await rejection(runtime.dispose())).toMatchObject({ kind: 'OwnershipLost' })
    expect(await kept.done).toEqual({ exitCode: null, signal: 'SIGTERM' })
    await untilGone(of)
  })

  test('item 174: a mechanism that does not exist is refused, and none is taken in its place', () => {
    const make = (): unknown => new LocalSubprocessRuntime({ ownership: 'hope' as 'auto' }).ownership()
    expect(String(thrown(make))).toContain('hope')
  })

  if (!isRoot) {
    test('as user: item 174: a mechanism that does not work here is an error, and none is taken in its place', () => {
      const make = (): unknown => new LocalSubprocessRuntime({ ownership: 'cgroup' }).ownership()
      expect(thrown(make)).toMatchObject({ kind: 'OwnershipUnavailable' })
    })
  }
})

describe('the look-up of a program', () => {
  test("item 177: the child's own PATH decides, not the host's", async () => {
    const of = openCase()
    mkdirSync(join(of.directory, 'bin'))
    program(join(of.directory, 'bin', 'case-program'), '#!/bin/sh\necho found\n')
    const run = async (PATH: string | undefined): Promise<string | undefined> => {
      const handle = of.spawn(['case-program'], { env: { PATH } })
      await within('end', handle.done)
      return textOf(handle)
    }
    expect(await run(`/nonexistent:${join(of.directory, 'bin')}`)).toBe('found\n')
    // Relative entries, and the empty one, are the child's.
    expect(await run('bin')).toBe('found\n')
    program(join(of.directory, 'case-program'), '#!/bin/sh\necho here\n')
    expect(await run(':bin')).toBe('here\n')
    expect(await rejection(run('/usr/bin'))).toMatchObject({ code: 'ENOENT', kind: 'ProgramNotFound' })
  })

  test('item 177: without a PATH it is /usr/bin and /bin', async () => {
    const of = openCase()
    const handle = of.spawn(['env'], { env: { PATH: undefined } })
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(textOf(handle)).not.toMatch(/^PATH=/m)
  })

  test('item 177: a program that may not be run is passed over, and remembered', async () => {
    const of = openCase()
    const [first, second] = [join(of.directory, 'first'), join(of.directory, 'second')]
    for (const directory of [first, second]) mkdirSync(directory)
    program(join(first, 'case-program'), '#!/bin/sh\n', 0o644)
    const spawn = () => of.spawn(['case-program'], { env: { PATH: `${first}:${second}` } })
    expect(await rejection(spawn().done)).toMatchObject({ code: 'EACCES', kind: 'ProgramNotExecutable' })
    program(join(second, 'case-program'), '#!/bin/sh\nexit 8\n')
    expect(await within('end', spawn().done)).toEqual({ exitCode: 8, signal: null })
  })

  test('item 177: a script that names no interpreter is run by /bin/sh', async () => {
    const of = openCase()
    const script = program(join(of.directory, 'script'), 'echo "$1"; exit 9\n')
    const handle = of.spawn([script, 'argument'])
    expect(await within('end', handle.done)).toEqual({ exitCode: 9, signal: null })
    expect(textOf(handle)).toBe('argument\n')
  })

  const nul: [string, object, RegExp][] = [
    ['argv', { argv: ['true', 'a\0b'] }, /argv/],
    ['the program', { argv: ['tr\0ue'] }, /argv/],
    ['cwd', { cwd: '/\0' }, /cwd|working directory/],
    ['a name in env', { env: { 'CASE\0NAME': 'x' } }, /CASE/],
    ['a value in env', { env: { CASE_NAME: 'x\0hidden' } }, /CASE_NAME/],
  ]
  test.each(nul)('item 178: a NUL byte in %s is refused at once, naming it', (_, changes, names) => {
    const of = openCase()
    const error = thrown(() => of.runtime.spawn({ ...of.spec(['true']), ...changes })) as Error
    expect(error).toMatchObject({ kind: 'InvalidSpec' })
    expect(error.message).toMatch(names)
    expect(error.message).not.toContain('hidden')
  })

  test.each(nul)('item 178: so it is for a terminal, as a rejection: %s', async (_, changes, names) => {
    const of = openCase()
    const error = (await rejection(of.runtime.spawnTerminal({ ...of.terminalSpec(['true']), ...changes }))) as Error
    expect(error).toMatchObject({ kind: 'InvalidSpec' })
    expect(error.message).toMatch(names)
  })

  test('item 179: a miss has a kind of its own, apart from a bad name and an abort', async () => {
    const { runtime } = openCase()
    const refusal = async (command: string, signal?: AbortSignal) => rejection(runtime.resolveExecutable(command, {}, signal))
    expect(await refusal('no-such-program')).toMatchObject({ kind: 'ProgramNotFound' })
    for (const command of ['', './true', 'bin/true']) expect(await refusal(command)).toMatchObject({ kind: 'InvalidSpec' })
    expect(await refusal('/no/such/program')).toMatchObject({ kind: 'ProgramNotExecutable' })
    expect(await refusal('no-such-program', AbortSignal.abort('stop'))).toBe('stop')
  })

  test("item 180: the terminal environment is the platform and the user's shell", async () => {
    const { runtime } = openCase()
    vi.stubEnv('SHELL', '/bin/of-the-user')
    expect(await runtime.terminalEnvironment()).toEqual({ platform: process.platform, shell: '/bin/of-the-user' })
    for (const value of ['', undefined]) {
      vi.stubEnv('SHELL', value)
      expect(await runtime.terminalEnvironment()).toEqual({ platform: process.platform, shell: userInfo().shell })
    }
  })
})

describe.each(tiers)('the control pipe: %s', (ownership) => {
  const control = (handle: LocalSubprocessHandle): Duplex => {
    if (handle.control === undefined) throw new Error('there is no control pipe')
    return handle.control
  }
  /** The child's end, in a shell. */
  const CONTROL = 'DSH_SUBPROCESS_CONTROL'

  test('item 181: it carries a conversation beside the streams', async () => {
    const of = openCase({ ownership })
    const script = `read -r line <&"$${CONTROL}"; echo "got $line" >&"$${CONTROL}"; echo "$${CONTROL}"; ls /proc/self/fd`
    const handle = of.spawn(shell(script), { control: true })
    control(handle).write('hello\n')
    expect((await readAll(control(handle))).toString()).toBe('got hello\n')
    await within('end', handle.done)
    // The three standard ones, the control pipe, and the one that lists them.
    expect(textOf(handle)).toBe('3\n0\n1\n2\n3\n4\n')
  })

  test("item 181: the end of the host's half leaves the child's half open", async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('cat <&3 >&3; echo rest >&3'), { control: true })
    control(handle).end('half')
    expect((await readAll(control(handle))).toString()).toBe('halfrest\n')
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
  })

  test('item 181: what nobody reads of it blocks neither done nor the wait', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('echo unread >&3; (sleep 300) 1>&- 2>&- &'), { control: true, drainMs: NEVER_MS, graceMs: NEVER_MS })
    const pipe = control(handle)
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect((await untilRead(pipe, '\n')).toString()).toBe('unread\n')
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  })

  test('item 181: a disposal closes it when the tree is gone, not before', async () => {
    const of = openCase({ ownership })
    const script = 'trap "echo bye >&3; read -r code <&3; exit \\$code" TERM; echo ready; while :; do sleep 0.05; done'
    const handle = of.spawn(shell(script), { control: true, graceMs: NEVER_MS })
    await untilCollected(handle.collected.stdout, READY)
    const pipe = control(handle)
    const closed = once(pipe, 'close')
    const disposal = of.runtime.dispose()
    // The tree is asked to end, and still has somebody to talk to.
    expect(await untilRead(pipe, '\n')).toBe('bye\n')
    pipe.write('4\n')
    await within('disposal', disposal)
    await within('end of the control pipe', closed)
    expect(await handle.done).toEqual({ exitCode: 4, signal: null })
  })

  test('item 181: without it there is neither a variable nor a descriptor', async () => {
    const of = openCase({ ownership })
    vi.stubEnv(CONTROL, '9')
    const handle = of.spawn(shell(`echo "<$${CONTROL}>"; ls /proc/self/fd`))
    expect(handle.control).toBeUndefined()
    await within('end', handle.done)
    expect(textOf(handle)).toBe('<>\n0\n1\n2\n3\n')
  })

  test('item 181: its variable is not for callers to set', () => {
    const of = openCase({ ownership })
    for (const changes of [{ control: true }, {}]) {
      const error = thrown(() => of.spawn(['true'], { ...changes, env: { [CONTROL]: '3' } }))
      expect(error).toMatchObject({ kind: 'InvalidSpec' })
      expect((error as Error).message).toContain(CONTROL)
    }
  })
})

describe('spilled streams', () => {
  const SPILLED = { stdin: 'ignore', stdout: { maxBytes: 10, spill: { maxBytes: 1_000_000 } }, stderr: 'inherit' } as const

  test('item 182: a directory that is not there costs the spill and nothing else', async () => {
    const of = openCase()
    of.runtime.internals.spillDir = join(of.directory, 'missing')
    const handle = of.spawn(shell('printf %s 0123456789abcdef'), { stdio: SPILLED })
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    const reader = handle.collected.stdout
    expect(reader?.readFrom(0)).toEqual({ text: '6789abcdef', nextOffset: 16, lossy: true })
    expect(reader?.spill).toMatchObject({ state: 'withdrawn', reason: expect.stringMatching(/./) })
  })

  test('item 182: a directory that was removed is made again', async () => {
    const of = openCase()
    of.runtime.internals.spillDir = of.directory
    const spill = async (): Promise<string> => {
      const handle = of.spawn(shell('printf %s 0123456789abcdef'), { stdio: SPILLED })
      await within('end', handle.done)
      const path = handle.collected.stdout?.readFrom(0).spillPath
      expect(path?.startsWith(`${of.directory}/`)).toBe(true)
      expect(readFileSync(path as string, 'utf8')).toBe('0123456789abcdef')
      return path as string
    }
    const directory = join(await spill(), '..')
    expect(directory).not.toBe(of.directory)
    rmSync(directory, { recursive: true })
    await spill()
  })

  test('item 182: an unusable TMPDIR fails no spawn that asked for no spill', async () => {
    const end = await runHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime()
      const run = async (spill) => {
        const handle = runtime.spawn({
          argv: ['printf', '%s', '0123456789'], cwd: '/', graceMs: 3000,
          stdio: { stdin: 'ignore', stdout: { maxBytes: 4, ...spill }, stderr: 'inherit' },
        })
        const { exitCode } = await handle.done
        const { text } = handle.collected.stdout.readFrom(0)
        report({ exitCode, text, state: handle.collected.stdout.spill.state })
      }
      await run({})
      await run({ spill: { maxBytes: 1000 } })
      await runtime.dispose()
      `,
      { env: { TMPDIR: '/nonexistent/directory' } },
    )
    expect(end).toMatchObject({
      exitCode: 0,
      reports: [
        { exitCode: 0, text: '6789', state: 'none' },
        { exitCode: 0, text: '6789', state: 'withdrawn' },
      ],
    })
  })

  test('item 182: a collector whose file fails keeps its tail, and reports once, to a reporter that may throw', () => {
    const reasons: unknown[] = []
    const file = program(join(temporaryDirectory(), 'file'), '')
    const collector = new OutputCollector(4, 1000, 'stdout', join(file, 'below'), (reason) => {
      reasons.push(reason)
      throw new Error('the reporter fails, too')
    })
    for (const chunk of ['0123', '4567', '89']) collector.push(Buffer.from(chunk))
    collector.seal()
    expect(collector.finalize()).toEqual({ text: '6789', truncated: true })
    expect(reasons).toHaveLength(1)
    expect(reasons[0]).toMatchObject({ code: 'ENOTDIR' })
  })

  test("item 182: a file that is somebody else's is neither written nor removed", () => {
    const directory = temporaryDirectory()
    const overflowing = (onSpillFailure?: (reason: Error) => void): OutputCollector => {
      const collector = new OutputCollector(4, 1000, 'stdout', directory, onSpillFailure)
      collector.push(Buffer.from('0123456789'))
      return collector
    }
    const first = overflowing().readFrom(0).spillPath as string
    expect(statSync(first).mode & 0o777).toBe(0o600)
    // The next name is known beforehand, and taken.
    const [, number = ''] = /-(\d+)-[0-9a-f]{12}-stdout\.log$/.exec(first) ?? []
    vi.spyOn(crypto, 'randomBytes').mockImplementation((size: number) => Buffer.alloc(size, 0xab))
    const taken = join(directory, `dsh-subprocess-${process.pid}-${Number(number) + 1}-${'ab'.repeat(6)}-stdout.log`)
    writeFileSync(taken, "somebody else's")
    const reasons: Error[] = []
    const collector = overflowing((reason) => reasons.push(reason))
    expect(collector.finalize()).toEqual({ text: '6789', truncated: true })
    expect(reasons).toMatchObject([{ code: 'EEXIST' }])
    expect(readFileSync(taken, 'utf8')).toBe("somebody else's")
  })
})

describe('a snapshot', () => {
  test('item 183: it is a copy of what is retained, with the total that offsets go on from', async () => {
    const of = openCase()
    const handle = of.spawn(shell('printf %s 0123456789; read -r go; printf %s abc'), {
      stdio: { stdin: 'pipe', stdout: { maxBytes: 4, headBytes: 2 }, stderr: 'inherit' },
    })
    const reader = handle.collected.stdout
    await untilCollected(reader, '6789')
    const before = reader?.snapshot()
    expect(before).toEqual({ head: Buffer.from('01'), tail: Buffer.from('6789'), total: 10, dropped: 4, sealed: false })
    handle.stdin?.end('go\n')
    await within('end', handle.done)
    expect(before?.total).toBe(10)
    before?.tail.fill(0)
    expect(reader?.snapshot()).toEqual({ head: Buffer.from('01'), tail: Buffer.from('9abc'), total: 13, dropped: 7, sealed: true })
    expect(reader?.readFrom(10)).toEqual({ text: 'abc', nextOffset: 13, lossy: false })
  })

  test('item 183: so is that of a collector', () => {
    const collector = new OutputCollector(4, undefined, 'stdout', temporaryDirectory())
    collector.push(Buffer.from('0123456789'))
    const snapshot = collector.snapshot()
    expect(snapshot).toMatchObject({ tail: Buffer.from('6789'), total: 10, dropped: 6, sealed: false })
    collector.push(Buffer.from('a'))
    expect(snapshot.tail).toEqual(Buffer.from('6789'))
  })
})

describe('terminals', () => {
  test('item 184: the named type is TERM, and a resize has the columns first and reaches the program', async () => {
    const of = openCase()
    const script = 'trap "stty size" WINCH; echo "$TERM"; stty size; while :; do sleep 0.05; done'
    const terminal = await of.spawnTerminal(shell(script), { terminalType: 'xterm-256color', rows: 24, cols: 80 })
    expect(await untilRead(terminal.output, '24 80\r\n')).toBe('xterm-256color\r\n24 80\r\n')
    await terminal.resize(132, 43)
    expect(await untilRead(terminal.output, '\r\n')).toBe('43 132\r\n')
    for (const [cols, rows] of [[0, 24], [80, 0], [80, 65_536], [1.5, 24]] as const) {
      expect(await rejection(terminal.resize(cols, rows))).toBeInstanceOf(RangeError)
    }
    await within('termination', terminal.terminate())
    expect(await rejection(terminal.resize(80, 24))).toMatchObject({ message: 'terminal process has exited' })
  })

  test.each(tiers)('item 184: a termination resumes an output that was paused: %s', async (ownership) => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(['yes'])
    let bytes = 0
    terminal.output.on('data', (chunk: Buffer) => (bytes += chunk.length))
    await once(terminal.output, 'data')
    terminal.output.pause()
    const end = once(terminal.output, 'end')
    await within('termination', terminal.terminate())
    terminal.output.resume()
    await within('end of the output', end)
    expect(bytes).toBeGreaterThan(0)
  })
})

describe('recordings', () => {
  test('beyond the reference: a session is recorded as an asciicast, without what was typed', async () => {
    const of = openCase()
    const path = join(of.directory, 'session.cast')
    const terminal = await of.spawnTerminal(shell('stty -echo; echo ready; read -r line; echo "got é"'), { recording: { path } })
    await untilRead(terminal.output, 'ready\r\n')
    await terminal.resize(100, 30)
    await terminal.write('secret\n')
    await readAll(terminal.output)
    await within('end', terminal.done)
    await within('termination', terminal.terminate())
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const [header, ...events] = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(header).toMatchObject({ version: 2, width: 80, height: 24 })
    const recorded = events as [number, string, string][]
    const times = recorded.map(([time]) => time)
    expect(times).toEqual([...times].sort((first, second) => first - second))
    const texts = (kind: string): string =>
      recorded
        .filter((event) => event[1] === kind)
        .map(([, , text]) => text)
        .join('')
    expect(texts('o')).toBe('ready\r\ngot é\r\n')
    expect(texts('r')).toBe('100x30')
    expect(texts('i')).toBe('')
  })

  test('beyond the reference: what is typed is recorded where that was asked for, and no file is written over', async () => {
    const of = openCase()
    const path = join(of.directory, 'session.cast')
    const terminal = await of.spawnTerminal(shell('read -r line'), { recording: { path, input: true } })
    await terminal.write('typed\n')
    await readAll(terminal.output)
    await within('termination', terminal.terminate())
    const recorded = readFileSync(path, 'utf8')
    expect(recorded).toMatch(/"i",\s*"typed\\n"/)
    const again = of.runtime.spawnTerminal(of.terminalSpec(shell('echo ran >ran'), { recording: { path } }))
    expect(await rejection(again)).toMatchObject({ code: 'EEXIST' })
    expect(readFileSync(path, 'utf8')).toBe(recorded)
    expect(existsSync(join(of.directory, 'ran'))).toBe(false)
  })
})

describe('proxies', () => {
  test.each(['HTTPS_PROXY', 'https_proxy', 'All_Proxy'])('item 186: %s keeps its spelling and its address, and loses its credentials', async (name) => {
    const of = openCase()
    vi.stubEnv(name, 'http://user:hunter2@proxy.example:3128')
    const kept = scrubbedParentEnv()[name]
    expect(kept).toMatch(/^http:\/\/proxy\.example:3128\/?$/)
    const handle = of.spawn(shell(`printenv "$1"`, name))
    await within('end', handle.done)
    expect(textOf(handle)).toBe(`${kept}\n`)
  })

  test('item 186: a proxy without credentials stays as it is', () => {
    vi.stubEnv('http_proxy', 'http://proxy.example:3128')
    vi.stubEnv('NO_PROXY', 'localhost,.example')
    expect(scrubbedParentEnv()).toMatchObject({ http_proxy: 'http://proxy.example:3128', NO_PROXY: 'localhost,.example' })
  })
})
