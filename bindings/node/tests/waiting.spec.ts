/**
 * Section G of the contract: the wait for the end of a tree, and what it costs.
 *
 * Item 71's reading of errno values and item 72's interval are the reference's way of looking, which this runtime does not have: that
 * nothing polls is tested.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { killGroup } from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { READY, shell, sleeps } from './fixture/probe.js'
import { isAlive, openCase, tiers } from './fixture/runtime.js'
import { isSettled } from './fixture/settled.js'
import { until, untilCollected, within } from './fixture/wait.js'

/** Longer than any test may take: what waits for it ends in a failure. */
const NEVER_MS = 600_000

describe.each(tiers)('the wait on %s', (ownership) => {
  test('item 69: it is for the tree, not for the target', async () => {
    const { spawn, processes } = openCase({ ownership })
    const handle = spawn(shell('exec 3<&0; (read -r go <&3) >/dev/null 2>&1 &'), {
      stdio: { stdin: 'pipe', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
    })
    const waiting = handle.waitForExit()
    await within('end', handle.done)
    expect(await isSettled(waiting)).toBe(false)
    expect(processes()).toHaveLength(1)
    handle.stdin?.end('go\n')
    expect(await within('end of the tree', waiting)).toBe(true)
    expect(processes()).toEqual([])
  })

  test('item 69: an abort ends the wait with false, and the tree lives on', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(sleeps())
    await untilCollected(handle.collected.stdout, READY)
    expect(await within('wait', handle.waitForExit(AbortSignal.abort()))).toBe(false)
    const controller = new AbortController()
    const waiting = handle.waitForExit(controller.signal)
    controller.abort()
    expect(await within('wait', waiting)).toBe(false)
    expect(isAlive(handle.pid)).toBe(true)
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit(new AbortController().signal))).toBe(true)
    expect(await within('wait', handle.waitForExit(AbortSignal.abort()))).toBe(true)
  })

  test('item 70: any number of waits end together', async () => {
    const { spawn } = openCase({ ownership })
    const handle = spawn(sleeps())
    await untilCollected(handle.collected.stdout, READY)
    const controllers = Array.from({ length: 200 }, () => new AbortController())
    const waits = controllers.flatMap(({ signal }) => [handle.waitForExit(), handle.waitForExit(signal)])
    const aborted = controllers.splice(0, 50)
    for (const controller of aborted) controller.abort()
    handle.terminate()
    const answers = await within('waits', Promise.all(waits))
    expect(answers.filter((answer) => !answer)).toHaveLength(aborted.length)
  })
})

test('item 70: a group with nothing but zombies is gone', async () => {
  const { spawn } = openCase({ ownership: 'process_group' })
  const script = `
import os, time
ready, announce = os.pipe()
if os.fork() == 0:
    gate, left = os.pipe()
    if os.fork() == 0:
        os.read(gate, 1)
        os._exit(0)
    # The child stays in the group that this process leaves, and nobody reaps it.
    os.setsid()
    os.write(left, b"x")
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    os.write(1, b"%d\\nready\\n" % os.getpid())
    os.close(1)
    os.close(2)
    os.write(announce, b"x")
    time.sleep(300)
os.read(ready, 1)
`
  const handle = spawn(['python3', '-c', script], { graceMs: NEVER_MS })
  const parent = Number.parseInt(await untilCollected(handle.collected.stdout, READY))
  onTestFinished(() => killGroup(parent, 'SIGKILL'))
  expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
  expect(await within('end of the group', handle.waitForExit())).toBe(true)
  expect(isAlive(parent)).toBe(true)
  killGroup(parent, 'SIGKILL')
  await until(() => !isAlive(parent), 'end of the process that left')
})

test('item 72: a wait for what lingers costs nothing while it lingers', async () => {
  const end = await runHost(`
    import { spawnSync } from 'node:child_process'
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const handles = Array.from({ length: 5 }, () => runtime.spawn({
      argv: ['sh', '-c', 'sleep 300 >/dev/null 2>&1 & :'], cwd: '/', graceMs: 1_000,
      stdio: { stdin: 'ignore', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
    }))
    await Promise.all(handles.map((handle) => handle.done))
    for (const handle of handles) void handle.waitForExit()
    const switches = () => process.resourceUsage().voluntaryContextSwitches
    const before = switches()
    // JavaScript sleeps as well: what this process does meanwhile is the runtime's own doing.
    spawnSync('sleep', ['2'])
    report(switches() - before)
    await runtime.dispose()
  `)
  expect(end.exitCode, end.stderr).toBe(0)
  // A look every 15 ms would be some 130 for each of the five.
  expect(end.reports[0]).toBeLessThan(60)
})

describe('the event loop', () => {
  /** A host whose tree has a member that outlives the target, and on SIGTERM makes a file after a while. */
  const lingering = (rest: string): string => `
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const script = \`(trap 'sleep 0.3; : >"$1"; exit' TERM; echo ready; exec >/dev/null 2>&1; while :; do sleep 1; done) &\`
    const handle = runtime.spawn({
      argv: ['sh', '-c', script, 'sh', process.argv[1]], cwd: '/', graceMs: 60_000,
      stdio: { stdin: 'ignore', stdout: { maxBytes: 64 }, stderr: { maxBytes: 64 } },
    })
    await handle.done
    report(handle.collected.stdout.readFrom(0).text)
    ${rest}
  `

  test('item 67: a termination keeps it alive until the tree is gone', async () => {
    const { directory } = openCase()
    const file = join(directory, 'terminated')
    const end = await runHost(lingering('handle.terminate()'), { args: [file] })
    expect(end).toMatchObject({ exitCode: 0, reports: [READY] })
    expect(existsSync(file)).toBe(true)
  })

  test('item 67: so does a wait', async () => {
    const { directory } = openCase()
    const file = join(directory, 'terminated')
    const end = await runHost(
      lingering(`
        handle.waitForExit(new AbortController().signal).then(report)
        process.kill((await handle.members())[0].pid, 'SIGTERM')
      `),
      { args: [file] },
    )
    expect(end).toMatchObject({ exitCode: 0, reports: [READY, true] })
    expect(existsSync(file)).toBe(true)
  })

  test('item 67: a wait that was aborted does not', async () => {
    const { directory } = openCase()
    const file = join(directory, 'terminated')
    const end = await runHost(lingering(`report(await handle.waitForExit(AbortSignal.timeout(1)))`), { args: [file] })
    expect(end).toMatchObject({ exitCode: 0, reports: [READY, false] })
    expect(existsSync(file)).toBe(false)
  })
})
