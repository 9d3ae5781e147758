/**
 * Section F of the contract: how a target ended, and when that is told. With what later versions of the reference added to it: a done
 * that rejects (items 172, 173) and an abort that comes early or late (175, 176).
 */
import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LocalSubprocessRuntime, SubprocessError, type SubprocessOutcome, type SubprocessStdio } from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import {
  endsBySignal,
  exitsWith,
  ignoresTerm,
  leavesHolder,
  leavesQuietChild,
  printsBytes,
  READY,
  shell,
  sleeps,
} from './fixture/probe.js'
import { isAlive, openCase, tiers, untilGone } from './fixture/runtime.js'
import { isSettled } from './fixture/settled.js'
import { readAll, rejection, until, untilCollected, untilRead, within } from './fixture/wait.js'

/** Longer than any test may take: what waits for it ends in a failure. */
const NEVER_MS = 600_000

const SUCCESS: SubprocessOutcome = { exitCode: 0, signal: null }

/** Collected output, and an input to steer the program by. */
const STEERED: SubprocessStdio = { stdin: 'pipe', stdout: { maxBytes: 65_536 }, stderr: { maxBytes: 65_536 } }

/** The same with raw output. */
const RAW: SubprocessStdio = { ...STEERED, stdout: 'pipe' }

/** Prints `early` and ends; a child holds the outputs until it reads a line, and prints `late`. */
const leavesSteeredHolder = (): string[] => shell('exec 3<&0; (read -r go <&3; printf late) & printf early')

describe('the outcome', () => {
  test.each([0, 1, 7, 126, 127, 128, 143, 255])('item 56: exit code %i is a code, and no signal', async (code) => {
    const { spawn } = openCase()
    expect(await within('end', spawn(exitsWith(code)).done)).toEqual({ exitCode: code, signal: null })
  })

  test.each(['HUP', 'INT', 'QUIT', 'ABRT', 'KILL', 'USR1', 'SEGV', 'PIPE', 'ALRM', 'TERM'])(
    'item 56: SIG%s is a signal, and no code',
    async (name) => {
      const { spawn } = openCase()
      expect(await within('end', spawn(endsBySignal(name)).done)).toEqual({ exitCode: null, signal: `SIG${name}` })
    },
  )

  test('item 56: a termination that the target answers with an exit code is that code, whoever asked', async () => {
    const { spawn } = openCase()
    const script = shell(`trap 'exit 3' TERM; echo ready; while :; do sleep 1; done`)
    const controller = new AbortController()
    const [terminated, aborted] = [spawn(script), spawn(script, { signal: controller.signal })]
    await Promise.all([terminated, aborted].map(({ collected }) => untilCollected(collected.stdout, READY)))
    terminated.terminate()
    controller.abort(new Error('timeout'))
    expect(await within('end', terminated.done)).toEqual({ exitCode: 3, signal: null })
    expect(await within('end', aborted.done)).toEqual({ exitCode: 3, signal: null })
  })

  test('item 56: it has exit facts alone', async () => {
    const { spawn } = openCase()
    expect(Object.keys(await within('end', spawn(exitsWith(0)).done)).sort()).toEqual(['exitCode', 'signal'])
  })

  test('item 59: done settles once, and what comes later changes nothing', async () => {
    const { spawn } = openCase()
    const handle = spawn(exitsWith(4))
    const first = handle.done
    const outcome = await within('end', first)
    handle.terminate()
    handle.terminateForHostExit()
    await within('end of the tree', handle.waitForExit())
    expect(handle.done).toBe(first)
    expect(await handle.done).toBe(outcome)
    expect(outcome).toEqual({ exitCode: 4, signal: null })
    expect(await within('exit', handle.exited)).toEqual(outcome)
  })
})

describe('the time of done', () => {
  test('item 57: a collected stream that a descendant holds is waited for', async () => {
    const { spawn } = openCase()
    const handle = spawn(leavesSteeredHolder(), { stdio: STEERED, graceMs: NEVER_MS })
    expect(await within('exit', handle.exited)).toEqual(SUCCESS)
    await untilCollected(handle.collected.stdout, 'early')
    expect(await isSettled(handle.done)).toBe(false)
    handle.stdin?.write('go\n')
    expect(await within('end', handle.done)).toEqual(SUCCESS)
    expect(handle.collected.stdout?.readFrom(0).text).toBe('earlylate')
    expect(handle.collected.stdout?.sealed).toBe(true)
  })

  test('item 57: a raw stream that a descendant holds is waited for, and has given everything by then', async () => {
    const { spawn } = openCase()
    const handle = spawn(leavesSteeredHolder(), { stdio: RAW, graceMs: NEVER_MS })
    let text = ''
    handle.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
    expect(await within('exit', handle.exited)).toEqual(SUCCESS)
    expect(await isSettled(handle.done)).toBe(false)
    handle.stdin?.write('go\n')
    expect(await within('end', handle.done)).toEqual(SUCCESS)
    expect(text).toBe('earlylate')
  })

  test('item 57: a consumer of a raw stream has every byte when done resolves', async () => {
    const { spawn } = openCase()
    for (let round = 0; round < 20; round++) {
      const handle = spawn(printsBytes(300_000), { stdio: RAW, graceMs: NEVER_MS })
      let bytes = 0
      handle.stdout?.on('data', (chunk: Buffer) => (bytes += chunk.length))
      expect(await within('end', handle.done)).toEqual(SUCCESS)
      expect(bytes).toBe(300_000)
    }
  })

  test.each(['nobody ever asked for', 'nobody reads'])('item 57: a raw stream that %s holds nothing up, and loses nothing', async (kind) => {
    const { spawn } = openCase()
    const handle = spawn(shell('printf unread'), { stdio: RAW, graceMs: NEVER_MS })
    if (kind === 'nobody reads') expect(handle.stdout?.readableFlowing).toBe(null)
    expect(await within('end', handle.done)).toEqual(SUCCESS)
    await within('end of the tree', handle.waitForExit())
    expect((await readAll(handle.stdout)).toString()).toBe('unread')
  })

  test.each(tiers)('item 57, O1 on %s: done comes graceMs after the exit where a descendant holds a stream for longer', async (ownership) => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(leavesHolder(), { graceMs: 200 })
    expect(await within('end', handle.done)).toEqual(SUCCESS)
    expect(handle.collected.stdout?.readFrom(0).text).toBe(READY)
    // It was no end of the tree: the holder runs on, and is named.
    expect(processes().length).toBeGreaterThan(0)
    const holders = await within('holders', handle.holders())
    expect(holders.map(({ stream }) => stream).sort()).toEqual(['stderr', 'stdout'])
    for (const { member } of holders) expect(processes()).toContain(member.pid)
  })

  test('beyond the contract: drainMs bounds the wait for held streams by itself', async () => {
    const { spawn } = openCase()
    for (const drainMs of [0, 50]) {
      const handle = spawn(leavesHolder(), { graceMs: NEVER_MS, drainMs })
      expect(await within('end', handle.done)).toEqual(SUCCESS)
      handle.terminateForHostExit()
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    }
  })

  test('item 58: a collected stream is sealed with what had arrived when the drain ends', async () => {
    const { spawn } = openCase()
    const handle = spawn(leavesSteeredHolder(), { stdio: STEERED, graceMs: 200 })
    await within('end', handle.done)
    const reader = handle.collected.stdout
    expect(reader).toMatchObject({ sealed: true, total: 5 })
    handle.stdin?.write('go\n')
    await within('end of the tree', handle.waitForExit())
    expect(reader?.readFrom(0)).toEqual({ text: 'early', nextOffset: 5, lossy: false })
  })

  test('item 58: a raw stream is left to its consumer when the drain ends', async () => {
    const { spawn } = openCase()
    const handle = spawn(leavesSteeredHolder(), { stdio: RAW, graceMs: 200 })
    expect(await untilRead(handle.stdout, 'early')).toBe('early')
    await within('end', handle.done)
    expect(handle.stdout?.destroyed).toBe(false)
    handle.stdin?.write('go\n')
    expect((await readAll(handle.stdout)).toString()).toBe('late')
  })

  test.each(tiers)('O1 on %s: a background child that holds the output, quiet or noisy, holds nothing up for long', async (ownership) => {
    const { spawn, runtime, processes } = openCase({ ownership })
    const scripts = [
      'sleep 300 & echo done',
      '(while :; do echo tick; sleep 0.05; done) & echo done',
      'nohup sleep 300 & echo done',
    ]
    const runs = scripts.map((script) => spawn(shell(script), { graceMs: 300 }))
    for (const handle of runs) {
      expect(await within('end', handle.done)).toEqual(SUCCESS)
      const reader = handle.collected.stdout
      expect(reader?.readFrom(0).text).toContain('done\n')
      expect(reader).toMatchObject({ sealed: true, total: reader?.total })
    }
    // The noisy one may have met the end of its pipe by now.
    expect(processes().length).toBeGreaterThanOrEqual(2)
    await within('disposal', runtime.dispose())
    expect(processes()).toEqual([])
  })

  test('beyond the contract: exited tells how the target ended before its streams have', async () => {
    const { spawn } = openCase()
    const handle = spawn(leavesHolder(), { graceMs: NEVER_MS })
    expect(await within('exit', handle.exited)).toEqual(SUCCESS)
    expect(await isSettled(handle.done)).toBe(false)
    handle.terminateForHostExit()
    expect(await within('end', handle.done)).toEqual(SUCCESS)
  })
})

describe('the abort signal', () => {
  test('item 59: its listener is gone when the tree is', async () => {
    const { spawn } = openCase()
    const { signal } = new AbortController()
    const handle = spawn(sleeps(), { signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    handle.terminate()
    await within('end of the tree', handle.waitForExit())
    await until(() => getEventListeners(signal, 'abort').length === 0, 'removal of the listener')
  })

  test('item 59: its listener is gone after a spawn that failed', async () => {
    const { spawn } = openCase()
    const { signal } = new AbortController()
    await rejection(spawn(['/nonexistent/program'], { signal }).done)
    await until(() => getEventListeners(signal, 'abort').length === 0, 'removal of the listener')
  })

  test('item 59: one signal serves any number of trees, without a warning and without a trace', async () => {
    const end = await runHost(`
      import { getEventListeners } from 'node:events'
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime()
      const { signal } = new AbortController()
      const spawn = () => runtime.spawn({
        argv: ['sh', '-c', ':'], cwd: '/', graceMs: 1_000, signal,
        stdio: { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
      })
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 32 }, async () => {
          const handle = spawn()
          await handle.done
          await Promise.all(Array.from({ length: 8 }, () => handle.waitForExit(signal)))
        }))
      }
      await runtime.dispose()
      report(getEventListeners(signal, 'abort').length)
    `)
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [0] })
  })

  test.each(tiers)('item 60, 175 on %s: an abort after the outcome ends what survived the target', async (ownership) => {
    const { spawn, processes } = openCase({ ownership })
    const controller = new AbortController()
    const handle = spawn(leavesQuietChild(), { signal: controller.signal })
    expect(await within('end', handle.done)).toEqual(SUCCESS)
    expect(processes()).toHaveLength(1)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(processes()).toEqual([])
    expect(await handle.done).toEqual(SUCCESS)
  })

  test.each(tiers)('item 176 on %s: an abort before the target runs is an end by SIGTERM', async (ownership) => {
    const { spawn, processes } = openCase({ ownership })
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController()
      const handle = spawn(sleeps(), { signal: controller.signal })
      controller.abort()
      expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
      expect(processes()).toEqual([])
    }
  })

  test.each(tiers)('item 176 on %s: an error that came first stays', async (ownership) => {
    const { spawn } = openCase({ ownership })
    const controller = new AbortController()
    const handle = spawn(['/nonexistent/program'], { signal: controller.signal })
    expect(await rejection(handle.started)).toMatchObject({ code: 'ENOENT' })
    controller.abort()
    handle.terminate()
    expect(await rejection(handle.done)).toMatchObject({ code: 'ENOENT', syscall: 'spawn /nonexistent/program' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
  })

  test('item 176: an abort that races a failure is one of the two', async () => {
    const { spawn } = openCase()
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController()
      const handle = spawn(['/nonexistent/program'], { signal: controller.signal })
      for (let turns = 0; turns < round % 4; turns++) await turn()
      controller.abort()
      const end = await within('end', handle.done.catch((reason: unknown) => reason))
      if (end instanceof Error) expect(end).toMatchObject({ code: 'ENOENT' })
      else expect(end).toEqual({ exitCode: null, signal: 'SIGTERM' })
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    }
  })
})

describe('an owner that fails', () => {
  /** A runtime whose disposal is the test's own matter: it tells of the failure, too. */
  function bareRuntime(): LocalSubprocessRuntime {
    const runtime = new LocalSubprocessRuntime({ ownership: 'reaper' })
    onTestFinished(() => runtime.dispose().catch(() => {}))
    return runtime
  }

  test('item 172, 173, 175: done and the wait reject when the tree\'s warden is killed, the tree ends, and the next one has another', async () => {
    const { spec, processes } = openCase()
    const runtime = bareRuntime()
    const handle = runtime.spawn(spec(ignoresTerm()))
    await untilCollected(handle.collected.stdout, READY)
    const waiting = handle.waitForExit()
    killWardenOf(handle.pid)
    const reason = await rejection(handle.done)
    expect(reason).toBeInstanceOf(SubprocessError)
    expect(reason).toMatchObject({ kind: 'OwnershipLost' })
    // The command did run, so it is not repeated.
    expect((reason as SubprocessError).mayHaveStarted).toBe('yes')
    expect(await rejection(waiting)).toMatchObject({ kind: 'OwnershipLost' })
    // It stays, and never becomes the end of the tree.
    expect(await rejection(handle.waitForExit())).toMatchObject({ kind: 'OwnershipLost' })
    expect(await rejection(handle.done)).toBe(reason)
    // Nobody had to ask for it.
    await untilGone({ processes })
    expect(await within('end of the next', runtime.spawn(spec(exitsWith(5))).done)).toEqual({ exitCode: 5, signal: null })
  })

  test('item 173: a wait that aborts is false, whatever becomes of the owner', async () => {
    const { spec, processes } = openCase()
    const runtime = bareRuntime()
    const handle = runtime.spawn(spec(sleeps()))
    await untilCollected(handle.collected.stdout, READY)
    const controller = new AbortController()
    const waiting = handle.waitForExit(controller.signal)
    controller.abort()
    expect(await within('wait', waiting)).toBe(false)
    killWardenOf(handle.pid)
    await rejection(handle.done)
    await untilGone({ processes })
  })

  /** Kills the parent of a target: on the reaper that is the warden which owns its tree. */
  function killWardenOf(target: number): void {
    const status = readFileSync(`/proc/${target}/status`, 'utf8')
    const warden = Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1])
    expect(warden).not.toBe(process.pid)
    expect(isAlive(warden)).toBe(true)
    process.kill(warden, 'SIGKILL')
  }
})
