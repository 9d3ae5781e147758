/**
 * Section G of the contract: the one verb that ends a tree. The wait for the end is in waiting.spec.ts, a pid that is used again in
 * reuse.spec.ts, `killGroup` in group.spec.ts.
 */
import { spawn as spawnChild } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { killGroup, LocalSubprocessRuntime, SubprocessError, type SubprocessOutputReader } from 'dsh-subprocess'
import { freeze } from './fixture/freezer.js'
import {
  cleansUpOnTerm,
  exitsWith,
  hasChildren,
  ignoresTerm,
  leavesSession,
  leavesStubbornChild,
  node,
  READY,
  shell,
  sleeps,
} from './fixture/probe.js'
import { inescapableTiers, isAlive, isRoot, openCase, tiers, untilGone } from './fixture/runtime.js'
import { rejection, until, untilCollected, within } from './fixture/wait.js'

/** Longer than any test may take: what waits for it ends in a failure. */
const NEVER_MS = 600_000

/** Resolves when all these texts were printed, in whatever order. */
async function untilAll(reader: SubprocessOutputReader | undefined, texts: readonly string[]): Promise<void> {
  for (const text of texts) await untilCollected(reader, text)
}

/** The numbers that a program printed, one a line. */
function numbers(text: string): number[] {
  return text.split('\n').filter((line) => /^\d+$/.test(line)).map(Number)
}

describe.each(tiers)('termination on %s', (ownership) => {
  test('item 61: SIGTERM reaches every member of the group, once', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(
      shell(
        `for name in a b; do
           (trap 'echo "$name ends"; exit' TERM; echo "$name is there"; while :; do sleep 1; done) &
         done
         trap 'echo "leader ends"; wait; exit 9' TERM; echo 'leader is there'; while :; do sleep 1; done`,
      ),
      { graceMs: NEVER_MS },
    )
    const names = ['leader', 'a', 'b']
    await untilAll(handle.collected.stdout, names.map((name) => `${name} is there\n`))
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 9, signal: null })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    const lines = handle.collected.stdout?.readFrom(0).text.split('\n') ?? []
    for (const name of names) expect(lines.filter((line) => line === `${name} ends`), name).toHaveLength(1)
    expect(processes()).toEqual([])
  })

  test('item 61: what ignores SIGTERM gets SIGKILL graceMs later', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(shell(`trap '' TERM; sleep 300 & sleep 300 & echo ready; wait`), { graceMs: 100 })
    await untilCollected(handle.collected.stdout, READY)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })

  test('item 61: the abort of the signal does the same', async () => {
    const { spawn, processes } = openCase({ ownership })
    const [polite, stubborn] = [new AbortController(), new AbortController()]
    const first = spawn(cleansUpOnTerm(7), { graceMs: NEVER_MS, signal: polite.signal })
    const second = spawn(ignoresTerm(), { graceMs: 100, signal: stubborn.signal })
    await Promise.all([first, second].map(({ collected }) => untilCollected(collected.stdout, READY)))
    polite.abort()
    stubborn.abort()
    expect(await within('end', first.done)).toEqual({ exitCode: 7, signal: null })
    expect(first.collected.stdout?.readFrom(0).text).toBe(`${READY}cleaned\n`)
    expect(await within('end', second.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    await within('end of the trees', Promise.all([first.waitForExit(), second.waitForExit()]))
    expect(processes()).toEqual([])
  })

  test('item 61: a stopped member is continued, so that it can act on SIGTERM', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(shell(`trap 'echo woke; exit 5' TERM; echo ready; kill -s STOP $$; while :; do sleep 1; done`), { graceMs: NEVER_MS })
    await untilCollected(handle.collected.stdout, READY)
    await until(() => /^State:\s*T/m.test(readFileSync(`/proc/${handle.pid}/status`, 'utf8')), 'stopped target')
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 5, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${READY}woke\n`)
  })

  test('item 62: another call does not repeat the signal', async () => {
    const { spawn } = openCase({ ownership })
    const controller = new AbortController()
    const handle = spawn(shell(`trap 'echo term' TERM; echo ready; until read -r go; do :; done; echo end`), {
      stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
      graceMs: NEVER_MS,
      signal: controller.signal,
    })
    await untilCollected(handle.collected.stdout, READY)
    handle.terminate()
    await untilCollected(handle.collected.stdout, 'term\n')
    for (let calls = 0; calls < 10; calls++) handle.terminate()
    controller.abort()
    // A signal that was sent is pending when its sender goes on, so it comes before the line is read.
    handle.stdin?.end('go\n')
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${READY}term\nend\n`)
  })

  test('item 62: another call does not move the deadline', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(ignoresTerm(), { graceMs: 500 })
    await untilCollected(handle.collected.stdout, READY)
    // A deadline that moved with them would never come.
    const calls = setInterval(() => handle.terminate(), 20)
    onTestFinished(() => clearInterval(calls))
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  })

  test('item 63, O4: a member that ignores SIGTERM is killed after its leader died', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(
      shell(`(trap '' TERM; echo ready; exec >/dev/null 2>&1; while :; do sleep 1; done) & exec sleep 300`),
      { graceMs: 1_500 },
    )
    await untilCollected(handle.collected.stdout, READY)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })

  test('item 63: what the target left is ended after the target settled', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(leavesStubbornChild(), { graceMs: 100 })
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(processes().length).toBeGreaterThan(0)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })

  test('item 65: on a tree that is gone it does nothing', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(exitsWith(3))
    await within('end of the tree', handle.waitForExit())
    for (let calls = 0; calls < 3; calls++) {
      handle.terminate()
      handle.terminateForHostExit()
    }
    expect(await within('end', handle.done)).toEqual({ exitCode: 3, signal: null })
    expect(await handle.waitForExit()).toBe(true)
    expect(await within('members', handle.members())).toEqual([])
  })

  test('item 73: the jobs of a shell with job control are members', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(['bash', '-c', 'set -m; sleep 300 & sleep 300 & echo $!; echo ready; wait'], { graceMs: 500 })
    const job = numbers(await untilCollected(handle.collected.stdout, READY))[0] as number
    expect(groupOf(job)).not.toBe(handle.pid)
    expect((await within('members', handle.members())).map(({ pid }) => pid)).toContain(job)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })

  test('O3: no member of a pipeline outlives it, and the output so far is there', async () => {
    const { spawn, processes } = openCase({ ownership })
    const controller = new AbortController()
    const handle = spawn(['bash', '-c', '(echo first; exec sleep 300) | cat | cat'], { graceMs: 500, signal: controller.signal })
    await untilCollected(handle.collected.stdout, 'first\n')
    controller.abort()
    await within('end', handle.done)
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(handle.collected.stdout?.readFrom(0).text).toBe('first\n')
    expect(processes()).toEqual([])
  })

  test('O5: the wait is for the whole tree, and not for the wrapper that dies first', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(
      shell(`sh -c 'trap "sleep 0.5; echo cleaned; exit 0" TERM; echo ready; while :; do sleep 0.1; done'; :`),
      { graceMs: NEVER_MS },
    )
    await untilCollected(handle.collected.stdout, READY)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
    await within('end', handle.done)
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${READY}cleaned\n`)
  })

  test('O6: a signal that a tree sends to its own group is no signal to the host', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(shell('kill -s TERM 0; sleep 300'))
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('O6: a termination right behind the spawn ends the tree, and nobody else', async () => {
    const { spawn, processes } = openCase({ ownership })
    const sibling = spawnChild('sleep', ['300'], { stdio: 'ignore' })
    onTestFinished(() => void sibling.kill('SIGKILL'))
    await once(sibling, 'spawn')
    for (let round = 0; round < 60; round++) {
      const handle = spawn(hasChildren(2), { graceMs: 200 })
      for (let turns = 0; turns < round % 4; turns++) await turn()
      // Half of them end while the target begins to run.
      if (round % 2 === 1) await within('start', handle.started)
      handle.terminate()
      const outcome = await within('end', handle.done)
      expect(outcome.signal, JSON.stringify(outcome)).toMatch(/^SIG(TERM|KILL)$/)
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    }
    expect(processes()).toEqual([])
    expect(sibling.exitCode ?? sibling.signalCode).toBeNull()
  })

  test('O7: a handler has the time to remove a lock file, however deep it runs', async () => {
    const { directory, spawn } = openCase({ ownership })
    const lock = join(directory, 'lock')
    const handle = spawn(
      shell(`sh -c ': >"$0"; trap "rm -f \\"$0\\"; exit 143" TERM; echo ready; while :; do sleep 0.05; done' "$1"; :`, lock),
      { graceMs: NEVER_MS },
    )
    await untilCollected(handle.collected.stdout, READY)
    expect(existsSync(lock)).toBe(true)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(existsSync(lock)).toBe(false)
  })

  test('beyond the contract: terminateForHostExit() kills every member at once, whatever it ignores', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(shell(`trap '' TERM; sleep 300 & echo ready; wait`), { graceMs: NEVER_MS })
    await untilCollected(handle.collected.stdout, READY)
    handle.terminateForHostExit()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
    // Before the target runs, too.
    const early = spawn(sleeps(), { graceMs: NEVER_MS })
    early.terminateForHostExit()
    expect((await within('end', early.done)).exitCode).toBeNull()
    expect(await within('end of the tree', early.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })
})

describe.each(inescapableTiers)('what nothing leaves: %s', (ownership) => {
  test('item 73: a daemon in a session of its own is a member', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(leavesSession(), { graceMs: 500 })
    const daemon = numbers(await untilCollected(handle.collected.stdout, READY))[0] as number
    expect(isAlive(daemon)).toBe(true)
    expect(groupOf(daemon)).toBe(daemon)
    const controller = new AbortController()
    const early = handle.waitForExit(controller.signal)
    controller.abort()
    expect(await within('wait', early)).toBe(false)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
  })

  test.each(['setsid sleep 300 & sleep 300', 'setsid -f sleep 300; sleep 300', '(setsid sh -c "sleep 300" &); sleep 300'])(
    'O2: an end by the clock is bounded, and reaches what left the session: %s',
    async (script) => {
      const { spawn, processes } = openCase({ ownership })
      const controller = new AbortController()
      const handle = spawn(['bash', '-c', script], { graceMs: 500, signal: controller.signal })
      await until(() => processes().some((pid) => isAlive(pid) && groupOf(pid) !== handle.pid), 'member in another session')
      controller.abort(new Error('timeout'))
      await within('end', handle.done)
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
      expect(processes()).toEqual([])
    },
  )
})

test('item 73: on process_group a daemon may leave, and the ownership says so', async () => {
  const { spawn, processes } = openCase({ ownership: 'process_group' })
  const handle = spawn(leavesSession(), { graceMs: 500 })
  const daemon = numbers(await untilCollected(handle.collected.stdout, READY))[0] as number
  onTestFinished(() => killGroup(daemon, 'SIGKILL'))
  const ownership = await within('ownership', handle.ownership())
  expect(ownership.mechanism).toBe('process_group')
  expect(ownership.weaknesses.join('\n')).toMatch(/session/)
  handle.terminate()
  expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  killGroup(daemon, 'SIGKILL')
  await untilGone({ processes })
})

describe.each(tiers)('a spawn that failed on %s', (ownership) => {
  test('item 75: the tree is gone, and its termination does nothing', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(['/nonexistent/program'])
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    const reason = await rejection(handle.done)
    handle.terminate()
    handle.terminateForHostExit()
    expect(handle.pid).toBe(-1)
    expect(await within('wait', handle.waitForExit(AbortSignal.abort()))).toBe(true)
    expect(await within('members', handle.members())).toEqual([])
    expect(await rejection(handle.done)).toBe(reason)
  })

  test('item 75: a termination that races the failure is contained', async () => {
    const { spawn } = openCase({ ownership })
    for (let round = 0; round < 20; round++) {
      const handle = spawn(['/nonexistent/program'])
      for (let turns = 0; turns < round % 4; turns++) await turn()
      if (round % 2 === 0) handle.terminate()
      else handle.terminateForHostExit()
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
      const end = await within('end', handle.done.catch((reason: unknown) => reason))
      if (end instanceof Error) {
        expect(end).toMatchObject({ code: 'ENOENT' })
        expect(handle.pid).toBe(-1)
      } else {
        expect(end).toMatchObject({ exitCode: null, signal: expect.stringMatching(/^SIG(TERM|KILL)$/) as string })
      }
    }
  })
})

describe('O9: the end of a server by its input', () => {
  const server = (script: string): string[] => node(`${script}; process.stdout.write('ready\\n')`)
  const START = `const say = (word) => process.stdout.write(word + '\\n')
    process.stdin.resume()`
  const piped = { stdin: 'pipe', stdout: { maxBytes: 1_024 }, stderr: { maxBytes: 1_024 } } as const

  test('one that ends with its input gets no signal', async () => {
    const { spawn } = openCase()
    const handle = spawn(
      server(`${START}; process.on('SIGTERM', () => say('term')); process.stdin.on('end', () => process.stdout.write('eof\\n', () => process.exit(0)))`),
      { stdio: piped },
    )
    await untilCollected(handle.collected.stdout, READY)
    handle.stdin?.end()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${READY}eof\n`)
  })

  test('one that goes on without input ends by SIGTERM', async () => {
    const { spawn } = openCase()
    const handle = spawn(
      server(`${START}; process.stdin.on('end', () => say('eof')); process.on('SIGTERM', () => process.stdout.write('term\\n', () => process.exit(0))); setInterval(() => {}, 1e6)`),
      { stdio: piped, graceMs: NEVER_MS },
    )
    await untilCollected(handle.collected.stdout, READY)
    handle.stdin?.end()
    await untilCollected(handle.collected.stdout, 'eof\n')
    const controller = new AbortController()
    const patience = handle.waitForExit(controller.signal)
    controller.abort()
    expect(await within('wait', patience)).toBe(false)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${READY}eof\nterm\n`)
  })

  test('one that ignores both is killed', async () => {
    const { spawn } = openCase()
    const handle = spawn(
      server(`${START}; process.stdin.on('end', () => say('eof')); process.on('SIGTERM', () => say('term')); setInterval(() => {}, 1e6)`),
      { stdio: piped, graceMs: 500 },
    )
    await untilCollected(handle.collected.stdout, READY)
    handle.stdin?.end()
    await untilCollected(handle.collected.stdout, 'eof\n')
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
  })
})

describe.runIf(isRoot).each(tiers.filter((tier) => tier !== 'reaper'))('as root: a member that cannot be killed, on %s', (ownership) => {
  test('item 68, 69, 173: it is named until it can be, and then another termination ends it', async () => {
    const { spec, processes } = openCase({ ownership })
    const runtime = new LocalSubprocessRuntime({ ownership, killBoundMs: 300 })
    onTestFinished(() => runtime.dispose().catch(() => {}))
    const handle = runtime.spawn(spec(hasChildren(2), { graceMs: 100 }))
    const [frozen, other] = numbers(await untilCollected(handle.collected.stdout, READY)) as [number, number]
    const thaw = await freeze(frozen)
    handle.terminate()
    const reason = await rejection(handle.waitForExit())
    expect(reason).toBeInstanceOf(SubprocessError)
    expect(reason).toMatchObject({ kind: 'Survivors', survivors: [{ pid: frozen }] })
    expect((reason as Error).message).toContain(String(frozen))
    expect(isAlive(other)).toBe(false)
    // The target itself has ended, and says so.
    expect((await within('end', handle.done)).exitCode).toBeNull()
    expect((await within('survivors', handle.survivors())).map(({ pid }) => pid)).toEqual([frozen])
    handle.terminate()
    expect(await rejection(handle.waitForExit())).toMatchObject({ kind: 'Survivors' })
    await thaw()
    handle.terminate()
    await untilGone({ processes })
    // A wait that is asked before the runtime has seen the end still names the survivor.
    await within(
      'end of the tree',
      (async () => {
        while (!(await handle.waitForExit().catch(() => false))) await turn()
      })(),
    )
  })
})

/** The process group of a process. */
function groupOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // Behind the command: the state, the parent, the group.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2])
}
