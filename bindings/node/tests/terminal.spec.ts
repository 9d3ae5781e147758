/**
 * Section I of the contract: terminals.
 *
 * Not here, because nothing of it applies on Linux: item 104 (terminals of macOS and Windows) and the Windows half of item 106. The other
 * half, an unsupported platform that is named, is in modules.spec.ts. What item 184 adds is in later.spec.ts.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type {
  LocalSubprocessTerminalHandle,
  SubprocessTerminalForeground,
  SubprocessTerminalSignal,
  SubprocessTerminalSpawnSpec,
} from 'dsh-subprocess'
import { freeze } from './fixture/freezer.js'
import { startHost } from './fixture/host.js'
import { node, parseEnvironment, printsEnvironment, shell } from './fixture/probe.js'
import {
  type Case,
  inescapableTiers,
  isAlive,
  isRoot,
  MARKER,
  openCase,
  openDescriptors,
  processesMarked,
  tiers,
  untilGone,
  untilNoDescriptorLeaks,
} from './fixture/runtime.js'
import { readAll, rejection, until, untilRead, within } from './fixture/wait.js'

afterEach(() => {
  vi.unstubAllEnvs()
})

const EXITED = 'terminal process has exited'

const bash = (script: string): string[] => ['bash', '-c', script]
const python = (script: string): string[] => ['python3', '-c', script]

/** Longer than any test: what ends before it did not need it. */
const NEVER_MS = 1_000_000

/** A terminal ends each line with a carriage return, too. */
const plain = (bytes: Buffer): string => bytes.toString().replaceAll('\r\n', '\n')

/** What a terminal prints from now on to its end. */
const rest = async (terminal: LocalSubprocessTerminalHandle): Promise<string> => plain(await readAll(terminal.output))

const ended = (terminal: LocalSubprocessTerminalHandle) => within('end of the program', terminal.done)

/** The fields of a process's line in the process table, from its state on; none where it is gone. See `proc_pid_stat(5)`. */
const fields = (pid: number): string[] => {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return line.slice(line.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** A look at the foreground that sees what is wanted. The kernel tells nobody when a program begins to wait. */
async function foregroundThat(
  terminal: LocalSubprocessTerminalHandle,
  wanted: (seen: SubprocessTerminalForeground) => boolean,
): Promise<SubprocessTerminalForeground> {
  const look = async (): Promise<SubprocessTerminalForeground> => {
    for (;;) {
      const seen = await terminal.inspectForeground()
      if (seen !== undefined && wanted(seen)) return seen
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  return within('foreground that was waited for', look())
}

/** A bash at its prompt, which reads nobody's settings and runs each command in a process group of its own. */
async function atThePrompt(of: Case): Promise<LocalSubprocessTerminalHandle> {
  const terminal = await of.spawnTerminal(['bash', '--norc', '-i'], { env: { PS1: 'prompt> ', HISTFILE: undefined } })
  await untilRead(terminal.output, 'prompt> ')
  return terminal
}

describe('the allocation', () => {
  test('item 83: an argv without a program rejects', async () => {
    const of = openCase()
    for (const argv of [[], [''], ['', 'x']]) {
      const error = await rejection(of.runtime.spawnTerminal(of.terminalSpec(argv)))
      expect(error).toMatchObject({ message: 'terminal argv must contain a program' })
    }
  })

  test('item 83: a signal that has aborted rejects with its own reason', async () => {
    const of = openCase()
    const reason = { why: 'stop' }
    for (const signal of [AbortSignal.abort(reason), AbortSignal.abort('stop'), AbortSignal.abort()]) {
      const allocation = of.runtime.spawnTerminal(of.terminalSpec(shell('echo ran >ran'), { signal }))
      expect(await rejection(allocation)).toBe(signal.reason)
    }
    expect(existsSync(join(of.directory, 'ran'))).toBe(false)
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2_147_483_648])('item 83: a grace of %s rejects', async (graceMs) => {
    const of = openCase()
    const error = await rejection(of.runtime.spawnTerminal(of.terminalSpec(['true'], { graceMs })))
    expect(error).toMatchObject({
      message: 'subprocess graceMs must be a positive finite number no greater than 2147483647',
    })
  })

  test.each(tiers)('item 84: an abort while the terminal is being made rejects with the reason and leaves nothing: %s', async (ownership) => {
    const of = openCase({ ownership })
    for (let turn = 0; turn < 20; turn += 1) {
      const controller = new AbortController()
      const reason = new Error(`turn ${turn}`)
      const allocation = of.runtime.spawnTerminal(
        of.terminalSpec(shell('trap "" TERM HUP; while :; do sleep 1; done'), { signal: controller.signal, graceMs: 100 }),
      )
      controller.abort(reason)
      expect(await rejection(allocation)).toBe(reason)
    }
    await untilGone(of)
  })

  test('item 84: an abort after that does nothing', async () => {
    const of = openCase()
    const controller = new AbortController()
    const terminal = await of.spawnTerminal(shell('read -r line; exit 7'), { signal: controller.signal })
    controller.abort()
    await terminal.write('go\n')
    expect(await ended(terminal)).toEqual({ exitCode: 7, signal: null })
  })

  test('item 85: the program leads a session of its own and has its terminal, of the size that was asked for', async () => {
    const of = openCase()
    const script = 'read -r pid comm state parent group session rest </proc/$$/stat; tty; stty size; echo $pid $group $session; read -r go'
    const terminal = await of.spawnTerminal(shell(script), { rows: 37, cols: 113 })
    const { pid } = terminal
    expect(await untilRead(terminal.output, `${pid} ${pid} ${pid}`)).toMatch(/^\/dev\/pts\/\d+\r\n37 113\r\n/)
    expect((await terminal.inspectForeground())?.processGroupId).toBe(pid)
  })

  test('item 85: the environment is the scrubbed one with the explicit entries on top', async () => {
    vi.stubEnv('CASE_API_KEY', 'ambient')
    vi.stubEnv('DSH_AMBIENT', 'ambient')
    vi.stubEnv('CASE_PLAIN', 'ambient')
    vi.stubEnv('CASE_REMOVED', 'ambient')
    const of = openCase()
    const env = { CASE_REMOVED: undefined, CASE_TOKEN: 'explicit', DSH_GIVEN: 'explicit' }
    const terminal = await of.spawnTerminal(printsEnvironment(), { env })
    const seen = parseEnvironment((await readAll(terminal.output)).toString())
    expect(seen.get('CASE_PLAIN')).toBe('ambient')
    expect(seen.get('CASE_TOKEN')).toBe('explicit')
    expect(seen.get('DSH_GIVEN')).toBe('explicit')
    for (const name of ['CASE_API_KEY', 'DSH_AMBIENT', 'CASE_REMOVED']) expect(seen.has(name), name).toBe(false)
  })

  const types: [string, Partial<SubprocessTerminalSpawnSpec>, string | undefined][] = [
    ['is dumb where nobody says', {}, 'dumb'],
    ['is the type that was named', { terminalType: 'xterm-256color' }, 'xterm-256color'],
    ['is the explicit entry, whatever the type', { terminalType: 'vt100', env: { TERM: 'screen' } }, 'screen'],
    ['is the explicit entry without a type', { env: { TERM: 'screen' } }, 'screen'],
    ['is missing where the entry removes it', { terminalType: 'vt100', env: { TERM: undefined } }, undefined],
  ]
  test.each(types)('item 85: TERM %s', async (_, changes, expected) => {
    vi.stubEnv('TERM', 'ambient-terminal')
    const terminal = await openCase().spawnTerminal(printsEnvironment(), changes)
    expect(parseEnvironment((await readAll(terminal.output)).toString()).get('TERM')).toBe(expected)
  })

  test('item 86, O27: a missing program and a directory that cannot be entered reject, told apart', async () => {
    const of = openCase()
    const [missing, file] = [join(of.directory, 'missing'), join(of.directory, 'file')]
    writeFileSync(file, '')
    const refusal = async (argv: string[], cwd: string) => rejection(of.runtime.spawnTerminal(of.terminalSpec(argv, { cwd })))
    expect(await refusal(['no-such-program', 'x'], of.directory)).toMatchObject({
      kind: 'ProgramNotFound',
      code: 'ENOENT',
      syscall: 'spawn no-such-program',
      path: 'no-such-program',
      spawnargs: ['x'],
      mayHaveStarted: 'no',
    })
    for (const program of ['true', 'no-such-program']) {
      expect(await refusal([program], missing)).toMatchObject({ kind: 'CwdNotFound', code: 'ENOENT', syscall: 'chdir', path: missing })
      expect(await refusal([program], file)).toMatchObject({ kind: 'CwdNotDirectory', code: 'ENOTDIR', syscall: 'chdir', path: file })
    }
  })

  test.each([0, -1, 1.5, Number.NaN, 65_536, '24'])('item 87: %s is no size, and the error says of what', async (size) => {
    const of = openCase()
    for (const name of ['rows', 'cols'] as const) {
      const error = await rejection(of.runtime.spawnTerminal(of.terminalSpec(['true'], { [name]: size as number })))
      expect(error).toBeInstanceOf(RangeError)
      expect((error as Error).message).toContain(name)
    }
  })

  test('item 87: the smallest and the largest size are taken as they are', async () => {
    const of = openCase()
    const terminal = await of.spawnTerminal(['stty', 'size'], { rows: 1, cols: 65_535 })
    expect(await rest(terminal)).toBe('1 65535\n')
  })
})

describe('the output', () => {
  const quick: [string, string, number, string][] = [
    ['one burst', `printf %s "$(head -c 20480 /dev/zero | tr '\\0' h)"`, 0, 'h'.repeat(20_480)],
    ['many lines', 'seq 1 3000; exit 3', 3, Array.from({ length: 3000 }, (_, line) => `${line + 1}\n`).join('')],
  ]
  test.each(quick)('item 88, O21: %s before a quick exit is read whole, 150 times', async (_, script, exitCode, printed) => {
    const of = openCase()
    const run = async (): Promise<void> => {
      const terminal = await of.spawnTerminal(bash(script))
      const output = await rest(terminal)
      // Not shown where they differ: it is long.
      expect(output === printed, `${output.length} of ${printed.length}`).toBe(true)
      expect(await ended(terminal)).toEqual({ exitCode, signal: null })
    }
    for (let turn = 0; turn < 15; turn += 1) await Promise.all(Array.from({ length: 10 }, run))
  })

  test('item 88, O12: bytes pass as they are, characters in two writes and bytes that are none', async () => {
    const script = String.raw`stty -opost; printf '\303'; printf '\251 \360\237\230'; printf '\200 \377\376 \300\200 \000\r\n'`
    const terminal = await openCase().spawnTerminal(bash(script))
    const expected = Buffer.from('c3a920f09f988020fffe20c08020000d0a', 'hex')
    expect(await readAll(terminal.output)).toEqual(expected)
  })

  test('item 88: a paused consumer holds the program up and loses nothing', async () => {
    const of = openCase()
    // It says that nobody takes more when the terminal has not for two seconds; else it stops at 64 MiB.
    const script = `
import os, select, tty
tty.setraw(0)
os.write(1, b'ready')
os.read(0, 1)
os.set_blocking(1, False)
total = 0
while total < 1 << 26:
    try:
        total += os.write(1, b'x' * 4096)
    except BlockingIOError:
        if not select.select([], [1], [], 2)[1]:
            break
os.set_blocking(1, True)
with open('total.new', 'w') as file:
    file.write(str(total))
os.rename('total.new', 'total')
os.write(1, b'end')
`
    const terminal = await of.spawnTerminal(python(script))
    await untilRead(terminal.output, 'ready')
    const chunks: Buffer[] = []
    terminal.output.on('data', (chunk: Buffer) => chunks.push(chunk)).pause()
    await terminal.write('x')
    await until(() => existsSync(join(of.directory, 'total')), 'end of what the terminal takes', 60_000)
    const total = Number(readFileSync(join(of.directory, 'total'), 'utf8'))
    expect(total).toBeGreaterThan(0)
    expect(total).toBeLessThan(1 << 20)
    const closed = new Promise((resolve) => terminal.output.once('end', resolve))
    terminal.output.resume()
    await within('end of the output', closed)
    expect(Buffer.concat(chunks).toString() === `${'x'.repeat(total)}end`).toBe(true)
  })

  test('item 88: an output that was destroyed is thrown away, and the program goes on', async () => {
    const terminal = await openCase().spawnTerminal(shell('read -r go; head -c 1000000 /dev/zero; exit 4'))
    terminal.output.destroy()
    await terminal.write('go\n')
    expect(await ended(terminal)).toEqual({ exitCode: 4, signal: null })
  })

  test.each(tiers)('O21: somebody who keeps the terminal open does not hold up its end: %s', async (ownership) => {
    const of = openCase({ ownership })
    const script = 'trap "" HUP TERM; (while :; do sleep 1; done) & echo last; exit 3'
    const terminal = await of.spawnTerminal(bash(script), { graceMs: 100 })
    expect(await rest(terminal)).toBe('last\n')
    expect(await ended(terminal)).toEqual({ exitCode: 3, signal: null })
    await untilGone(of)
  })
})

describe('the outcome', () => {
  test('item 89: done has the exit code, or the name of the signal, or neither where the number has no name', async () => {
    const of = openCase()
    const outcome = async (argv: string[]) => ended(await of.spawnTerminal(argv))
    expect(await outcome(shell('exit 42'))).toEqual({ exitCode: 42, signal: null })
    expect(await outcome(shell('kill -s USR1 $$'))).toEqual({ exitCode: null, signal: 'SIGUSR1' })
    expect(await outcome(python('import os; os.kill(os.getpid(), 40)'))).toEqual({ exitCode: null, signal: null })
  })

  test('item 89: what became of the program is not changed by a termination after it', async () => {
    const terminal = await openCase().spawnTerminal(shell('exit 6'))
    const outcome = await ended(terminal)
    await within('termination', terminal.terminate())
    expect(await terminal.done).toEqual(outcome)
  })

  const ends: [string, string, object][] = [
    ['exit 42', '', { exitCode: 42, signal: null }],
    ['exit 1', 'sleep 300 & ', { exitCode: 1, signal: null }],
    ['exec true', '', { exitCode: 0, signal: null }],
    ['kill -9 $$', '', { exitCode: null, signal: 'SIGKILL' }],
  ]
  test.each(ends)('O24: a shell that ends itself by `%s` says how', async (end, before, outcome) => {
    const of = openCase()
    const terminal = await atThePrompt(of)
    await terminal.write(`${before}${end}\r`)
    expect(await ended(terminal)).toEqual(outcome)
    await untilGone(of)
  })
})

describe('the input', () => {
  test('item 90: what is written arrives verbatim', async () => {
    const terminal = await openCase().spawnTerminal(shell('stty raw -echo; echo ready; head -c 9 | od -An -tx1'))
    await untilRead(terminal.output, 'ready\n')
    await terminal.write('a\n\r\u0003')
    await terminal.write(Buffer.from([0xff, 0x00]))
    await terminal.write('\u20ac')
    expect((await rest(terminal)).trim()).toBe('61 0a 0d 03 ff 00 e2 82 ac')
  })

  test('item 90: writes keep their order without being waited for', async () => {
    const terminal = await openCase().spawnTerminal(shell('stty -echo; echo ready; exec cat'))
    await untilRead(terminal.output, 'ready\r\n')
    const lines = Array.from({ length: 200 }, (_, line) => `${line}\n`)
    await within('end of the writes', Promise.all([...lines, '\u0004'].map((line) => terminal.write(line))))
    expect(await rest(terminal)).toBe(lines.join(''))
  })

  test('item 90: a write, a resize and a signal after the exit reject', async () => {
    const terminal = await openCase().spawnTerminal(['true'])
    await ended(terminal)
    for (const call of [terminal.write('x'), terminal.resize(80, 24), terminal.signalForeground('SIGINT')]) {
      expect(await rejection(call)).toMatchObject({ message: EXITED })
    }
  })

  test('O22: a large paste that nobody has read a byte of comes back whole', async () => {
    const terminal = await openCase().spawnTerminal(shell('stty -echo; echo ready; exec cat'))
    await untilRead(terminal.output, 'ready\r\n')
    const paste = Array.from({ length: 3000 }, (_, line) => `${String(line).padStart(79, '0')}\n`).join('')
    await within('end of the paste', terminal.write(paste))
    await terminal.write('\u0004')
    expect((await rest(terminal)) === paste).toBe(true)
    expect(await ended(terminal)).toEqual({ exitCode: 0, signal: null })
  })

  test('O22: a program that never reads is told, and can be interrupted', async () => {
    const of = openCase({ writeBoundMs: 200 })
    const terminal = await of.spawnTerminal(shell('stty raw isig -echo; echo ready; exec sleep 300'))
    await untilRead(terminal.output, 'ready\n')
    expect(await rejection(terminal.write('x'.repeat(240_000)))).toMatchObject({ kind: 'InputNotRead' })
    await terminal.resize(33, 11)
    expect(await terminal.signalForeground('SIGINT')).toBe(terminal.pid)
    expect(await ended(terminal)).toEqual({ exitCode: null, signal: 'SIGINT' })
  })
})

describe('the foreground', () => {
  test('item 91, item 101: it is the group that the kernel names: the shell, then its job, then the shell again', async () => {
    const of = openCase()
    const shellItself = await atThePrompt(of)
    const idle = await foregroundThat(shellItself, (seen) => seen.inputWaiting)
    expect(idle).toEqual({ processGroupId: shellItself.pid, inputWaiting: true, inputWaitingState: 'waiting' })
    await shellItself.write("sh -c 'echo job $$; exec sleep 300'\r")
    await untilRead(shellItself.output, '\njob ')
    const job = Number(await untilRead(shellItself.output, '\r\n'))
    const busy = await foregroundThat(shellItself, (seen) => seen.processGroupId === job)
    expect(busy.inputWaiting).toBe(false)
    expect(Number(fields(shellItself.pid)[5])).toBe(job)
    expect(await shellItself.signalForeground('SIGKILL')).toBe(job)
    await untilRead(shellItself.output, 'prompt> ')
    expect((await foregroundThat(shellItself, (seen) => seen.inputWaiting)).processGroupId).toBe(shellItself.pid)
  })

  test('item 91, item 92: a terminal that no group has is undefined to look at, and cannot be signalled', async () => {
    const script = `
import fcntl, os, signal, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
os.write(1, b'ready')
signal.pause()
`
    const terminal = await openCase().spawnTerminal(python(script))
    await untilRead(terminal.output, 'ready')
    expect(await terminal.inspectForeground()).toBeUndefined()
    expect(await rejection(terminal.signalForeground('SIGINT'))).toMatchObject({
      message: 'cannot resolve foreground process group',
      kind: 'NoForeground',
    })
  })

  test('item 92: each signal reaches the foreground group, whose id is the answer', async () => {
    const script = `
import os, signal
def told(number, frame):
    os.write(1, b'got ' + signal.Signals(number).name.encode() + b';')
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGHUP):
    signal.signal(number, told)
os.write(1, b'ready;')
while True:
    signal.pause()
`
    const terminal = await openCase().spawnTerminal(python(script), { graceMs: 100 })
    await untilRead(terminal.output, 'ready;')
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGTSTP', 'SIGHUP'] as const) {
      expect(await terminal.signalForeground(signal)).toBe(terminal.pid)
      expect(await untilRead(terminal.output, ';')).toBe(`got ${signal};`)
    }
  })

  test('item 92: the shell itself is not killed, and an unknown signal is refused', async () => {
    const terminal = await openCase().spawnTerminal(shell('read -r line; exit 5'))
    expect(await rejection(terminal.signalForeground('SIGKILL'))).toMatchObject({
      message: 'terminate the terminal session instead',
      kind: 'OwnGroup',
    })
    expect(await rejection(terminal.signalForeground('SIGUSR1' as SubprocessTerminalSignal))).toBeInstanceOf(TypeError)
    await terminal.write('go\n')
    expect(await ended(terminal)).toEqual({ exitCode: 5, signal: null })
  })

  const waits: [string, string][] = [
    ['read', 'os.read(0, 1)'],
    ['select', 'select.select([0], [], [])'],
    ['poll', 'p = select.poll(); p.register(0, select.POLLIN); p.poll()'],
    ['epoll', 'p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()'],
    ['a read of /dev/tty', "os.read(os.open('/dev/tty', os.O_RDWR), 1)"],
    ['a read in another thread', 'threading.Thread(target=os.read, args=(0, 1)).start(); signal.pause()'],
  ]
  test.each(waits)('item 102: %s is waiting for input', async (_, wait) => {
    const terminal = await openCase().spawnTerminal(python(`import os, select, signal, threading\n${wait}`))
    const seen = await foregroundThat(terminal, ({ inputWaiting }) => inputWaiting)
    expect(seen).toEqual({ processGroupId: terminal.pid, inputWaiting: true, inputWaitingState: 'waiting' })
  })

  const others: [string, string][] = [
    ['a program that sleeps', 'echo ready; exec sleep 300'],
    ['a program that waits for a pipe', '(sleep 300; echo) | { echo ready >/dev/tty; exec cat; }'],
    ['a select of the output alone', `echo ready; exec python3 -c 'import os, select; r, w = os.pipe(); select.select([r], [], [])'`],
  ]
  test.each(others)('item 103: %s is not waiting for this terminal', async (_, script) => {
    const of = openCase()
    const terminal = await of.spawnTerminal(shell(script))
    await untilRead(terminal.output, 'ready\r\n')
    await until(() => of.processes().every((pid) => fields(pid)[0] === 'S'), 'sleep of all of them')
    const seen = await foregroundThat(terminal, ({ inputWaitingState }) => inputWaitingState !== 'unknown')
    expect(seen).toEqual({ processGroupId: terminal.pid, inputWaiting: false, inputWaitingState: 'not-waiting' })
  })

  test('item 105: a command that looks like a line of the process table misleads nobody', async () => {
    const of = openCase()
    const name = 'a) Z 1 1 (b'
    const script = `open('/proc/self/comm', 'w').write('${name}')\nimport os\nif os.fork() == 0: os._exit(0)\nos.read(0, 1)`
    const terminal = await of.spawnTerminal(python(script), { graceMs: NEVER_MS })
    const seen = await foregroundThat(terminal, ({ inputWaiting }) => inputWaiting)
    expect(seen.processGroupId).toBe(terminal.pid)
    expect((await terminal.members())[0]?.pid).toBe(terminal.pid)
    // The child that nobody waits for is a zombie, and a zombie is gone.
    await within('termination', terminal.terminate())
    await untilGone(of)
  })
})

describe.each(tiers)('the end of a session: %s', (ownership) => {
  test('item 93: one termination at a time, and one promise for all who ask', async () => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(shell('echo ready; exec sleep 300'), { graceMs: NEVER_MS })
    await untilRead(terminal.output, 'ready')
    const termination = terminal.terminate()
    expect(terminal.terminate()).toBe(termination)
    await within('termination', termination)
    expect(of.processes()).toEqual([])
    expect(await terminal.done).toEqual({ exitCode: null, signal: 'SIGTERM' })
    await within('another termination', terminal.terminate())
  })

  test('item 93: the others are asked first, the program last', async () => {
    const of = openCase({ ownership })
    const script = `
      (trap 'echo member >>log; exit' TERM; : >up; while :; do sleep 0.05; done) &
      trap 'echo program >>log; exit 3' TERM
      while [ ! -e up ]; do sleep 0.05; done
      echo ready; while :; do sleep 0.05; done`
    const terminal = await of.spawnTerminal(bash(script), { graceMs: NEVER_MS })
    await untilRead(terminal.output, 'ready')
    await within('termination', terminal.terminate())
    expect(readFileSync(join(of.directory, 'log'), 'utf8')).toBe('member\nprogram\n')
    expect(await ended(terminal)).toEqual({ exitCode: 3, signal: null })
  })

  test('item 93: who minds neither the hang-up nor the request is killed when the grace is over', async () => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(bash('trap "" TERM HUP; (while :; do sleep 1; done) & echo ready; while :; do sleep 1; done'), {
      graceMs: 100,
    })
    await untilRead(terminal.output, 'ready')
    await within('termination', terminal.terminate())
    expect(await ended(terminal)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(of.processes()).toEqual([])
  })

  test('item 94: whoever is in the session is a member, also with another parent and a group of its own', async () => {
    const of = openCase({ ownership })
    const script = 'set -m; (sleep 300 & (sleep 300 &)); nohup sleep 300 >/dev/null 2>&1 & echo ready; wait; sleep 300'
    const terminal = await of.spawnTerminal(bash(script), { graceMs: NEVER_MS })
    await untilRead(terminal.output, 'ready')
    await within('termination', terminal.terminate())
    expect(of.processes()).toEqual([])
  })

  test('item 95: members that end while others are being asked are no failure', async () => {
    const of = openCase({ ownership })
    const script = 'i=0; while [ $i -lt 100 ]; do sleep 300 & i=$((i+1)); done; echo ready; wait'
    const terminal = await of.spawnTerminal(bash(script), { graceMs: NEVER_MS })
    await untilRead(terminal.output, 'ready')
    // In the midst of an exec a process has no environment to be found by.
    await until(() => of.processes().length === 101, 'start of the members')
    const members = of.processes().filter((pid) => pid !== terminal.pid)
    for (const pid of members.slice(0, 50)) process.kill(pid, 'SIGKILL')
    await within('termination', terminal.terminate())
    expect(of.processes()).toEqual([])
  })

  test('item 97: what the program leaves in its session ends with it, unasked', async () => {
    const of = openCase({ ownership })
    const script = 'trap "" HUP; sleep 300 & disown; (sleep 300 &); read -r go; exit 7'
    const terminal = await of.spawnTerminal(bash(script))
    await until(() => of.processes().length === 3, 'start of the members')
    await terminal.write('go\n')
    expect(await ended(terminal)).toEqual({ exitCode: 7, signal: null })
    await untilGone(of)
  })

  test('item 98: after a termination no call is in flight, and a new one rejects', async () => {
    const of = openCase({ ownership, writeBoundMs: NEVER_MS })
    const terminal = await of.spawnTerminal(shell('stty raw -echo; echo ready; exec sleep 300'))
    await untilRead(terminal.output, 'ready')
    const calls = [terminal.write('x'.repeat(200_000)), ...Array.from({ length: 20 }, () => terminal.inspectForeground())]
    let settled = 0
    for (const call of calls) {
      const count = (): number => (settled += 1)
      void (call as Promise<unknown>).then(count, count)
    }
    await within('termination', terminal.terminate())
    expect(settled).toBe(calls.length)
    expect(await rejection(calls[0] as Promise<unknown>)).toMatchObject({ message: EXITED })
    for (const call of [terminal.write('x'), terminal.resize(80, 24), terminal.signalForeground('SIGINT')]) {
      expect(await rejection(call)).toMatchObject({ message: EXITED })
    }
  })

  test('item 99: a host that exits kills its sessions at once', async () => {
    const of = openCase()
    const host = startHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const [ownership, marker] = process.argv.slice(1)
      const runtime = new LocalSubprocessRuntime({ ownership })
      const terminal = await runtime.spawnTerminal({
        argv: ['bash', '-c', 'trap "" TERM HUP; (while :; do sleep 1; done) & echo ready; while :; do sleep 1; done'],
        cwd: '/', rows: 24, cols: 80, graceMs: 1e6, env: { ${MARKER}: marker },
      })
      terminal.output.once('data', () => { report('ready'); process.exit(9) })
      `,
      { args: [ownership, of.marker] },
    )
    expect(await host.next()).toBe('ready')
    expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: 9 })
    await untilGone(of)
  })

  test('item 99: terminateForHostExit kills without a wait and without a promise', async () => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(bash('trap "" TERM HUP; sleep 300 & echo ready; wait; sleep 300'), { graceMs: NEVER_MS })
    await untilRead(terminal.output, 'ready')
    expect(terminal.terminateForHostExit()).toBeUndefined()
    await untilGone(of)
    expect(await ended(terminal)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(terminal.terminateForHostExit()).toBeUndefined()
  })

  test('item 100: nothing polls: no timer runs while an idle session is waited for', async () => {
    const of = openCase()
    const host = startHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const [ownership, marker] = process.argv.slice(1)
      const runtime = new LocalSubprocessRuntime({ ownership })
      const terminal = await runtime.spawnTerminal({
        argv: ['sh', '-c', 'trap "" TERM HUP; echo ready; while :; do sleep 1; done'],
        cwd: '/', rows: 24, cols: 80, graceMs: 1e6, env: { ${MARKER}: marker },
      })
      terminal.output.once('data', () => {
        const termination = terminal.terminate()
        setImmediate(() => {
          report(process.getActiveResourcesInfo().filter((name) => name === 'Timeout'))
          terminal.terminateForHostExit()
          termination.then(() => runtime.dispose())
        })
      })
      `,
      { args: [ownership, of.marker] },
    )
    expect(await host.next()).toEqual([])
    expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: 0 })
    expect(processesMarked(of.marker)).toEqual([])
  })

  if (isRoot) {
    test('as root: item 93, item 96: a member that takes no signal is named, and another termination tries again', async () => {
      const of = openCase({ ownership, killBoundMs: 200 })
      const terminal = await of.spawnTerminal(bash('sleep 300 & echo $!; echo ready; wait'), { graceMs: 100 })
      const member = Number((await untilRead(terminal.output, 'ready')).split('\r\n')[0])
      const thaw = await freeze(member)
      const first = terminal.terminate()
      expect(await rejection(first)).toMatchObject({
        message: `terminal cleanup failed; surviving pids: ${member}`,
        kind: 'Survivors',
      })
      expect(terminal.terminate()).not.toBe(first)
      expect(isAlive(terminal.pid)).toBe(false)
      await thaw()
      await within('end of all terminations', untilTerminated(terminal))
    })

    test('as root: item 96: a program that takes no signal is named apart', async () => {
      const of = openCase({ ownership, killBoundMs: 200 })
      const terminal = await of.spawnTerminal(['sleep', '300'], { graceMs: 100 })
      const thaw = await freeze(terminal.pid)
      expect(await rejection(terminal.terminate())).toMatchObject({
        message: `terminal cleanup failed; surviving pid: ${terminal.pid}`,
        kind: 'Survivors',
      })
      await thaw()
      await within('end of all terminations', untilTerminated(terminal))
    })
  }
})

/** Terminates until it succeeds: an attempt that is made before the runtime has seen a member's end may still name it. */
async function untilTerminated(terminal: LocalSubprocessTerminalHandle): Promise<void> {
  for (;;) {
    const error: unknown = await terminal.terminate().then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (error === undefined) return
    expect(error).toMatchObject({ kind: 'Survivors' })
  }
}

describe.each(inescapableTiers)('a session that is left: %s', (ownership) => {
  test('item 94: a daemon with a session of its own ends with the rest', async () => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(bash('setsid -f sleep 300; (setsid sleep 300 &); echo ready; exec sleep 300'))
    await untilRead(terminal.output, 'ready')
    await within('termination', terminal.terminate())
    await untilGone(of)
    expect(await terminal.survivors()).toEqual([])
  })
})

test('item 94: where a daemon gets away, it is named', async () => {
  const of = openCase({ ownership: 'process_group' })
  const terminal = await of.spawnTerminal(bash('setsid -f sleep 300 </dev/null >/dev/null 2>&1; echo ready; exec sleep 300'))
  await untilRead(terminal.output, 'ready')
  const daemons = (): number[] => of.processes().filter((pid) => pid !== terminal.pid && fields(pid)[3] === String(pid))
  await until(() => daemons().length === 1, 'session of the daemon')
  const [daemon = -1] = daemons()
  await within('termination', terminal.terminate())
  expect(isAlive(daemon)).toBe(true)
  expect((await terminal.survivors()).map(({ pid }) => pid)).toContain(daemon)
  process.kill(daemon, 'SIGKILL')
  await untilGone(of)
})

describe('hosts', () => {
  test('O19: a child with pipes does not get the terminal of its host', async () => {
    const of = openCase()
    const host = node(
      `
      const { LocalSubprocessRuntime } = require('dsh-subprocess')
      const runtime = new LocalSubprocessRuntime()
      const handle = runtime.spawn({
        argv: ['sh', '-c', 'echo "by name" >/dev/tty || echo none; read -r x </dev/tty || echo none'],
        cwd: '/', graceMs: 3000,
        stdio: { stdin: 'ignore', stdout: { maxBytes: 4096 }, stderr: { maxBytes: 4096 } },
      })
      handle.done.then(async () => {
        console.log('child: ' + handle.collected.stdout.readFrom(0).text.replaceAll('\\n', ' '))
        await runtime.dispose()
      })
      `,
    )
    const terminal = await of.spawnTerminal(bash('before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo same').concat('bash', ...host), {
      cwd: join(__dirname, '..'),
    })
    expect(await rest(terminal)).toBe('child: none none \nsame\n')
  })

  test('O23: no descriptor stays behind sessions that ended, were never read, or could not start', async () => {
    const of = openCase()
    const open = async (): Promise<void> => {
      const [read, unread] = await Promise.all([of.spawnTerminal(['echo', 'x']), of.spawnTerminal(['echo', 'x'])])
      await rest(read)
      await Promise.all([read.terminate(), unread.terminate()])
      await rejection(of.runtime.spawnTerminal(of.terminalSpec(['no-such-program'])))
      await rejection(of.runtime.spawnTerminal(of.terminalSpec(['true'], { cwd: '/no/such/directory' })))
    }
    // The first ones make what a runtime keeps.
    for (let turn = 0; turn < 5; turn += 1) await open()
    const before = openDescriptors()
    for (let turn = 0; turn < 60; turn += 1) await open()
    await untilNoDescriptorLeaks(before)
  })

  test('O28: a host that ignores signals does not hand that on', async () => {
    const of = openCase()
    const host = startHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime()
      const open = (script) => runtime.spawnTerminal({
        argv: ['bash', '-c', script], cwd: '/', rows: 24, cols: 80, graceMs: 3000, env: { ${MARKER}: process.argv[1] },
      })
      const pipe = await open('yes | head -1; echo status \${PIPESTATUS[0]}; grep SigIgn /proc/self/status')
      let text = ''
      for await (const chunk of pipe.output) text += chunk
      report(text)
      const sleeper = await open('echo ready; exec sleep 300')
      sleeper.output.once('data', () => sleeper.write('\\x03'))
      report(await sleeper.done)
      await runtime.dispose()
      `,
      { args: [of.marker], through: ['sh', '-c', 'trap "" INT QUIT HUP PIPE; exec "$@"', 'sh'] },
    )
    const text = (await host.next()) as string
    expect(text).toContain('status 141')
    expect(text).toMatch(/SigIgn:\t0000000000000000/)
    expect(await host.next()).toEqual({ exitCode: null, signal: 'SIGINT' })
    expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: 0 })
  })
})
