/**
 * Section H of the contract: the disposal of a runtime. The end of the host is in host-exit.spec.ts, of a worker in workers.spec.ts, and
 * the runtime as a service of a harness in service.spec.ts.
 *
 * Item 81's live set is nothing that can be looked at: what follows from it is tested, the end of what outlived its target.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LocalSubprocessRuntime, SubprocessError } from 'dsh-subprocess'
import { freeze } from './fixture/freezer.js'
import {
  cleansUpOnTerm,
  exitsWith,
  ignoresTerm,
  leavesHolder,
  leavesStubbornChild,
  prints,
  printsBytes,
  READY,
  shell,
  sleeps,
} from './fixture/probe.js'
import { isAlive, isRoot, openCase, openDescriptors, tiers, untilGone, untilNoDescriptorLeaks } from './fixture/runtime.js'
import { isSettled } from './fixture/settled.js'
import { readAll, rejection, thrown, until, untilCollected, untilRead, within } from './fixture/wait.js'

/** Longer than any test may take: what waits for it ends in a failure. */
const NEVER_MS = 600_000

describe.each(tiers)('disposal on %s', (ownership) => {
  test('item 79: it ends every tree and every terminal, and waits for each of them', async () => {
    const { runtime, spawn, spawnTerminal, processes } = openCase({ ownership })
    const polite = spawn(cleansUpOnTerm(3), { graceMs: NEVER_MS })
    const stubborn = spawn(ignoresTerm(), { graceMs: 200 })
    const left = spawn(leavesStubbornChild(), { graceMs: 200 })
    const held = spawn(leavesHolder(), { graceMs: NEVER_MS })
    await Promise.all([polite, stubborn, left, held].map(({ collected }) => untilCollected(collected.stdout, READY)))
    const terminals = await Promise.all([
      spawnTerminal(sleeps(), { graceMs: NEVER_MS }),
      spawnTerminal(ignoresTerm(), { graceMs: 200 }),
    ])
    for (const terminal of terminals) await untilRead(terminal.output, 'ready\r\n')
    expect(await within('exit', left.exited)).toEqual({ exitCode: 0, signal: null })

    await within('disposal', runtime.dispose())
    expect(processes()).toEqual([])
    for (const { done } of [polite, stubborn, left, held, ...terminals]) expect(await isSettled(done)).toBe(true)
    expect(await polite.done).toEqual({ exitCode: 3, signal: null })
    expect(polite.collected.stdout?.readFrom(0).text).toBe(`${READY}cleaned\n`)
    expect(await stubborn.done).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(await held.done).toEqual({ exitCode: 0, signal: null })
    for (const handle of [polite, stubborn, left, held]) expect(await handle.waitForExit(AbortSignal.abort())).toBe(true)
  })

  test('item 79: a spawn that failed is no failure of it, nor one that is still to fail or to run', async () => {
    const { runtime, spawn, processes } = openCase({ ownership })
    const failed = spawn(['/nonexistent/program'])
    await rejection(failed.done)
    const failing = Array.from({ length: 5 }, () => spawn(['/nonexistent/program']))
    const beginning = Array.from({ length: 5 }, () => spawn(sleeps()))
    await within('disposal', runtime.dispose())
    expect(processes()).toEqual([])
    // A tree that was ended before anything of it happened was ended; whatever came first stays.
    for (const { done } of failing) {
      const end = await within('end', done.catch((reason: unknown) => reason))
      if (end instanceof Error) expect(end).toMatchObject({ code: 'ENOENT' })
      else expect(end).toEqual({ exitCode: null, signal: 'SIGTERM' })
    }
    for (const { done } of beginning) expect(await within('end', done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('item 81: what outlived its target is ended', async () => {
    const { runtime, spawn, processes } = openCase({ ownership })
    const handles = [spawn(leavesStubbornChild(), { graceMs: 100 }), spawn(leavesStubbornChild(), { graceMs: 100 })]
    for (const { done } of handles) expect(await within('end', done)).toEqual({ exitCode: 0, signal: null })
    expect(processes().length).toBeGreaterThanOrEqual(2)
    await within('disposal', runtime.dispose())
    expect(processes()).toEqual([])
  })

  test('O8: an agent that was started by a launcher ends with it', async () => {
    const { runtime, spawn, processes } = openCase({ ownership })
    const handle = spawn(['bash', '-c', `bash -c 'echo ready; while :; do sleep 1; done'; :`], {
      stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
    })
    await untilCollected(handle.collected.stdout, READY)
    expect(processes().length).toBeGreaterThanOrEqual(2)
    await within('disposal', runtime.dispose())
    expect(processes()).toEqual([])
  })

  test('item 79: it ends what is this runtime\'s, and nothing of another one', async () => {
    const [first, second] = [openCase({ ownership }), openCase({ ownership })]
    const [mine, other] = [first.spawn(sleeps()), second.spawn(sleeps())]
    await Promise.all([mine, other].map(({ collected }) => untilCollected(collected.stdout, READY)))
    await within('disposal', first.runtime.dispose())
    expect(first.processes()).toEqual([])
    expect(isAlive(other.pid)).toBe(true)
    expect(await within('end', second.spawn(exitsWith(6)).done)).toEqual({ exitCode: 6, signal: null })
  })
})

describe('disposal', () => {
  test('item 79: it happens once, whoever asks and how often', async () => {
    const { runtime, spawn } = openCase()
    const handle = spawn(sleeps())
    await untilCollected(handle.collected.stdout, READY)
    const first = runtime.dispose()
    expect(runtime.dispose()).toBe(first)
    expect(runtime[Symbol.asyncDispose]()).toBe(first)
    await within('disposal', first)
    expect(runtime.dispose()).toBe(first)
  })

  test('item 79: a handle of it is settled and stays readable', async () => {
    const { runtime, spawn } = openCase()
    const handle = spawn(shell('printf text; exec sleep 300'), { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 } } })
    const { stdin, stdout } = handle
    expect(await untilRead(stdout, 'text')).toBe('text')
    await within('disposal', runtime.dispose())
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect((await readAll(stdout)).toString()).toBe('')
    expect(stdin?.destroyed).toBe(true)
    handle.terminate()
    handle.terminateForHostExit()
    expect(handle.collected.stderr?.readFrom(0)).toEqual({ text: '', nextOffset: 0, lossy: false })
  })

  test('item 29: nothing is started from its beginning on', async () => {
    const { runtime, spec, terminalSpec, processes } = openCase()
    const disposal = runtime.dispose()
    for (let twice = 0; twice < 2; twice++) {
      const reason = thrown(() => runtime.spawn(spec(sleeps())))
      expect(reason).toBeInstanceOf(SubprocessError)
      expect(reason).toMatchObject({ kind: 'Disposed', mayHaveStarted: 'no' })
      expect(await rejection(runtime.spawnTerminal(terminalSpec(sleeps())))).toMatchObject({ kind: 'Disposed' })
      await within('disposal', disposal)
    }
    expect(processes()).toEqual([])
  })

  test('item 79: a terminal that is being opened is opened or refused, and ended', async () => {
    const { runtime, terminalSpec, processes } = openCase()
    const opening = runtime.spawnTerminal(terminalSpec(sleeps())).catch((reason: unknown) => reason)
    await within('disposal', runtime.dispose())
    const end = await within('terminal', opening)
    if (end instanceof Error) expect(end).toMatchObject({ name: 'SubprocessError' })
    expect(processes()).toEqual([])
  })

  test('item 77: the exit listener is there while a runtime is, and no longer', async () => {
    const before = process.listenerCount('exit')
    const warnings: Error[] = []
    const warn = (warning: Error): void => void warnings.push(warning)
    process.on('warning', warn)
    onTestFinished(() => void process.off('warning', warn))
    const { spec } = openCase()
    const runtimes = Array.from({ length: 20 }, () => new LocalSubprocessRuntime())
    const mounted = process.listenerCount('exit')
    expect(mounted).toBeGreaterThan(before)
    const handle = runtimes[0]?.spawn(spec(ignoresTerm(), { graceMs: 300 }))
    await untilCollected(handle?.collected.stdout, READY)
    const disposals = runtimes.map((runtime) => runtime.dispose())
    // Its tree still lives: a host that exits now must end it.
    expect(process.listenerCount('exit')).toBeGreaterThan(before)
    await within('disposals', Promise.all(disposals))
    // That of the test's own case is there.
    expect(process.listenerCount('exit')).toBe(before + 1)
    await turn()
    expect(warnings).toEqual([])
  })

  test('item 77: the exit listener is there until the last tree is gone', async () => {
    const before = process.listenerCount('exit')
    const { spec, processes } = openCase()
    const others = process.listenerCount('exit')
    const runtime = new LocalSubprocessRuntime()
    const handle = runtime.spawn(spec(shell('trap "read -r go; exit 0" TERM; echo ready; while :; do sleep 0.1; done'), {
      stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
      graceMs: NEVER_MS,
    }))
    await untilCollected(handle.collected.stdout, READY)
    const disposal = runtime.dispose()
    expect(await isSettled(disposal)).toBe(false)
    expect(process.listenerCount('exit')).toBeGreaterThan(before)
    handle.stdin?.end('go\n')
    await within('disposal', disposal)
    expect(process.listenerCount('exit')).toBe(others)
    expect(processes()).toEqual([])
  })

  test('O23: trees, terminals, failures and runtimes leave no descriptor, no terminal and no listener', async () => {
    const { spec, terminalSpec } = openCase()
    const cycle = async (): Promise<void> => {
      const runtime = new LocalSubprocessRuntime()
      const ends: Promise<unknown>[] = []
      for (let round = 0; round < 10; round++) {
        const raw = runtime.spawn(spec(prints('out', 'err'), { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' }, control: true }))
        // One is read, the others are never even asked for.
        ends.push(readAll(raw.stdout), raw.done)
        ends.push(runtime.spawn(spec(printsBytes(100), { stdio: { stdin: { data: 'unread' }, stdout: { maxBytes: 10, spill: { maxBytes: 1_000 } }, stderr: 'pipe' } })).done)
        ends.push(rejection(runtime.spawn(spec(['/nonexistent/program'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } })).done))
        ends.push(rejection(runtime.spawn(spec(exitsWith(0), { cwd: '/nonexistent/directory' })).done))
        ends.push(runtime.spawnTerminal(terminalSpec(prints('on a terminal'))).then(({ output }) => readAll(output)))
        ends.push(rejection(runtime.spawnTerminal(terminalSpec(['/nonexistent/program']))))
      }
      await within('ends', Promise.all(ends))
      await within('disposal', runtime.dispose())
    }
    // What the first use makes once stays.
    await cycle()
    const descriptors = openDescriptors()
    const [terminals, listeners] = [readdirSync('/dev/pts').length, process.listenerCount('exit')]
    for (let more = 0; more < 10; more++) await cycle()
    await untilNoDescriptorLeaks(descriptors)
    // Other tests may have terminals of their own.
    expect(readdirSync('/dev/pts').length).toBeLessThan(terminals + 50)
    expect(process.listenerCount('exit')).toBe(listeners)
  })

  test('O11: handles that nobody keeps leave no zombie, and later exit codes are right', async () => {
    const { spawn, processes } = openCase()
    await Promise.all(Array.from({ length: 100 }, () => spawn(exitsWith(0)).started))
    const collect = globalThis.gc as () => void
    collect()
    const { done } = spawn(exitsWith(7))
    expect(await within('end', done)).toEqual({ exitCode: 7, signal: null })
    await untilGone({ processes })
    const zombies = (): string[] =>
      readdirSync(`/proc/${process.pid}/task`).flatMap((thread) => {
        const children = readContained(`/proc/${process.pid}/task/${thread}/children`).split(' ').filter((pid) => pid !== '')
        return children.filter((pid) => /^State:\s*Z/m.test(readContained(`/proc/${pid}/status`)))
      })
    await until(() => zombies().length === 0, 'end of the zombies')
  })
})

describe.runIf(isRoot).each(tiers.filter((tier) => tier !== 'reaper'))('as root: disposal that fails on %s', (ownership) => {
  /** A runtime that gives up on a frozen process after a moment, with trees that sleep. */
  async function frozenTrees(count: number) {
    const { spec, processes } = openCase({ ownership })
    const runtime = new LocalSubprocessRuntime({ ownership, killBoundMs: 300 })
    onTestFinished(() => runtime.dispose().catch(() => {}))
    const start = async () => {
      const handle = runtime.spawn(spec(sleeps(), { graceMs: 100 }))
      await untilCollected(handle.collected.stdout, READY)
      return handle
    }
    const lively = await start()
    const frozen = await Promise.all(Array.from({ length: count }, start))
    const thaws = await Promise.all(frozen.map(({ pid }) => freeze(pid)))
    return { runtime, lively, frozen, processes, thaw: () => Promise.all(thaws.map((thaw) => thaw())) }
  }

  test('item 80: one failure is thrown as it is, after all that can be ended has ended', async () => {
    const { runtime, lively, frozen, processes, thaw } = await frozenTrees(1)
    const reason = await rejection(runtime.dispose())
    expect(reason).toBeInstanceOf(SubprocessError)
    expect(reason).toMatchObject({ kind: 'Survivors', survivors: [{ pid: frozen[0]?.pid }] })
    expect(isAlive(lively.pid)).toBe(false)
    // The same for whoever asks later.
    expect(await rejection(runtime.dispose())).toBe(reason)
    await thaw()
    await untilGone({ processes })
    expect((await within('end', (frozen[0] as (typeof frozen)[0]).done)).exitCode).toBeNull()
  })

  test('item 80: several failures are thrown together, and each names its survivor', async () => {
    const { runtime, lively, frozen, processes, thaw } = await frozenTrees(2)
    const reason = await rejection(runtime.dispose())
    expect(reason).toBeInstanceOf(AggregateError)
    expect((reason as AggregateError).message).toBe('local subprocess teardown failed')
    const named = (reason as AggregateError).errors.flatMap((error: SubprocessError) => error.survivors?.map(({ pid }) => pid))
    expect(named.sort()).toEqual(frozen.map(({ pid }) => pid).sort())
    expect(isAlive(lively.pid)).toBe(false)
    await thaw()
    await untilGone({ processes })
  })
})

/** A process may end between any two looks at it, and then has nothing to read. */
function readContained(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
