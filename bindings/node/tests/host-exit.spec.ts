/**
 * Section H of the contract: what becomes of trees when their host ends, by itself or not, and how long they keep its event loop alive.
 *
 * Item 78 lists what the reference does not cover. Where wardens own the trees they see every end of the host.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runHost, startHost, type Host, type HostEnd } from './fixture/host.js'
import { inescapableTiers, processesMarked, temporaryDirectory, tiers, untilGone, type Tier } from './fixture/runtime.js'
import { until, within } from './fixture/wait.js'

/**
 * A host with a runtime, and programs that log a SIGTERM: it is what a warden sends first, and no part of a kill. A shell complains
 * about a child that a signal ended, and would be ended by that itself where its host no longer reads: it does so to nobody.
 */
const HOST = `
import { LocalSubprocessRuntime } from 'dsh-subprocess'
const [, ownership, marker, log] = process.argv
const runtime = new LocalSubprocessRuntime({ ownership })
const env = { DSH_CASE: marker, LOG: log }
const logsTerm = ['sh', '-c', 'exec 2>/dev/null; trap "echo TERM >>\\\\"\\$LOG\\\\"; exit 0" TERM; echo ready; while :; do sleep 1; done']
const spec = (argv, changes) => ({
  argv, cwd: '/', graceMs: 60_000, env,
  stdio: { stdin: 'ignore', stdout: { maxBytes: 1_024 }, stderr: { maxBytes: 1_024 } },
  ...changes,
})
const untilReady = async (reader) => {
  for (;;) {
    // Taken before the look at the text, so that nothing can arrive unseen between the two.
    const { total } = reader
    if (reader.readFrom(0).text.includes('ready')) return
    await reader.changed(total)
  }
}
const start = async (argv = logsTerm, changes = {}) => {
  const handle = runtime.spawn(spec(argv, changes))
  await untilReady(handle.collected.stdout)
  return handle
}
const startTerminal = async (argv = logsTerm) => {
  const terminal = await runtime.spawnTerminal({ argv, cwd: '/', graceMs: 60_000, env, rows: 24, cols: 80 })
  let text = ''
  for await (const chunk of terminal.output.iterator({ destroyOnReturn: false })) if ((text += chunk).includes('ready')) break
  return terminal
}
`

/** A host's processes, and the log of their signals. */
interface Scene {
  readonly marker: string
  readonly log: string
  readonly args: readonly string[]
  processes(): number[]
  /** Each signal that was logged. */
  logged(): string[]
}

function scene(ownership: Tier | 'auto' = 'auto'): Scene {
  const [marker, log] = [randomUUID(), join(temporaryDirectory(), 'log')]
  const processes = (): number[] => processesMarked(marker)
  onTestFinished(() => {
    for (const pid of processes()) process.kill(pid, 'SIGKILL')
  })
  return {
    marker,
    log,
    args: [ownership, marker, log],
    processes,
    logged: () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter((line) => line !== '') : []),
  }
}

/** Runs a host that ends by itself. */
function ending({ args }: Scene, script: string): Promise<HostEnd> {
  return runHost(HOST + script, { args })
}

/** Starts a host that stays, and resolves when it has reported. */
async function staying({ args }: Scene, script: string): Promise<Host> {
  // An abort is no reason to write the memory of this process anywhere.
  const host = startHost(`${HOST}${script}; report('there'); setInterval(() => {}, 1e6)`, {
    args,
    through: ['sh', '-c', 'ulimit -c 0; exec "$@"', 'sh'],
  })
  expect(await host.next()).toBe('there')
  return host
}

describe.each(tiers)('the exit of a host, on %s', (ownership) => {
  test.each([
    ['process.exit()', 'process.exit(7)', 7, ''],
    ['an uncaught exception', 'setImmediate(() => { throw new Error("of the host") })', 1, 'of the host'],
    ['an unhandled rejection', 'Promise.reject(new Error("of the host"))', 1, 'of the host'],
    ['an event loop that is empty', 'process.exitCode = 5; handle.unref(); terminal.unref()', 5, ''],
  ])('item 76: %s kills every tree and terminal at once, and keeps its exit code and what it says', async (_, script, exitCode, text) => {
    const of = scene(ownership)
    const end = await ending(of, `const handle = await start(); const terminal = await startTerminal(); report('started'); ${script}`)
    expect(end, end.stderr).toMatchObject({ exitCode, signal: null, reports: ['started'] })
    expect(end.stderr).toContain(text)
    if (text === '') expect(end.stderr).toBe('')
    await untilGone(of)
    // Nobody was asked first: that is how a warden does it, and not what a host's own exit does.
    expect(of.logged()).toEqual([])
  })
})

describe.each(inescapableTiers)('the end of a host that it does not see, on %s', (ownership) => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGABRT', 'SIGKILL'] as const)(
    'item 78, O10: %s to the host ends its trees and terminals, with a SIGTERM to each first',
    async (signal) => {
      const of = scene(ownership)
      const host = await staying(of, 'await start(); await startTerminal()')
      expect(of.processes().length).toBeGreaterThanOrEqual(2)
      host.kill(signal)
      expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: null, signal })
      await untilGone(of)
      // A terminal's program is told by the terminal's hang-up as well, and may end by it before its SIGTERM comes.
      expect(of.logged().length).toBeGreaterThanOrEqual(1)
      expect(of.logged().length).toBeLessThanOrEqual(2)
    },
  )

  test('O10: what ignores SIGTERM is killed after its grace when the host is gone', async () => {
    const of = scene(ownership)
    const stubborn = 'trap "" TERM HUP; echo ready; while :; do sleep 1; done'
    const host = await staying(of, `await start(['sh', '-c', ${JSON.stringify(stubborn)}], { graceMs: 300 })`)
    host.kill('SIGKILL')
    await within('end of the host', host.ended)
    await untilGone(of)
  })

  test('O10: a host that ends while it starts trees leaves none', async () => {
    const of = scene(ownership)
    const end = await ending(
      of,
      `await start()
       for (let more = 0; more < 20; more++) runtime.spawn(spec(logsTerm))
       process.kill(process.pid, 'SIGKILL')`,
    )
    expect(end.signal).toBe('SIGKILL')
    await untilGone(of)
    // Whoever was to be started by somebody else than the host has had the time by now.
    const next = scene(ownership)
    expect(await ending(next, 'const handle = await start(); handle.terminate(); await handle.waitForExit()')).toMatchObject({ exitCode: 0 })
    expect(of.processes()).toEqual([])
  })
})

test('item 78: process_group does not outlive its host, and says so', async () => {
  const end = await ending(scene('process_group'), 'report(runtime.ownership().weaknesses)')
  expect(end.exitCode, end.stderr).toBe(0)
  expect((end.reports[0] as string[]).filter((weakness) => weakness.includes('host'))).not.toEqual([])
})

describe('the exit of a host', () => {
  test('item 76: the listener comes before the host\'s own', async () => {
    const of = scene()
    const end = await runHost(
      `process.on('exit', mine)
       function mine(code) { report({ code, place: process.listeners('exit').indexOf(mine), listeners: process.listenerCount('exit') }) }
       ${HOST}; await start(); process.exit(3)`,
      { args: of.args },
    )
    expect(end).toMatchObject({ exitCode: 3, reports: [{ code: 3, place: 1, listeners: 2 }] })
    await untilGone(of)
  })

  test('item 76: a host\'s own listener may fail, and everything is killed', async () => {
    const of = scene()
    const end = await ending(of, `process.on('exit', () => { throw new Error('of the listener') }); await start(); process.exit(3)`)
    expect(end.stderr).toContain('of the listener')
    await untilGone(of)
    expect(of.logged()).toEqual([])
  })

  test('item 76: every runtime is seen to, those of spawnSubprocess as well', async () => {
    const of = scene()
    const end = await ending(
      of,
      `import { spawnSubprocess } from 'dsh-subprocess'
       await start()
       const others = [new LocalSubprocessRuntime(), new LocalSubprocessRuntime({ ownership: 'process_group' })]
       const handles = [...others.map((other) => other.spawn(spec(logsTerm))), spawnSubprocess(spec(logsTerm))]
       for (const { collected: { stdout } } of handles) while (stdout.total === 0) await stdout.changed(0)
       await others[0].dispose()
       process.exit(0)`,
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '' })
    await untilGone(of)
    // The disposed one's was asked.
    expect(of.logged()).toEqual(['TERM'])
  })

  test('item 76: a tree whose target does not run yet is killed, too', async () => {
    const of = scene()
    const end = await ending(of, `for (let more = 0; more < 20; more++) runtime.spawn(spec(logsTerm)); process.exit(0)`)
    expect(end).toMatchObject({ exitCode: 0, stderr: '' })
    await untilGone(of)
  })

  test.each(['SIGKILL', 'exit'] as const)('O14: spill files do not outlive the host (%s)', async (how) => {
    const of = scene()
    const spills = temporaryDirectory()
    const host = await staying(
      of,
      `runtime.internals.spillDir = ${JSON.stringify(spills)}
       const handle = runtime.spawn(spec(['sh', '-c', 'head -c 100000 /dev/zero; exec sleep 300'],
         { stdio: { stdin: 'ignore', stdout: { maxBytes: 64, spill: { maxBytes: 1e6 } }, stderr: 'inherit' } }))
       const { stdout } = handle.collected
       await stdout.changed(99_999)
       process.stdin.on('end', () => process.exit(0)).resume()`,
    )
    await until(() => readdirSync(spills).length > 0, 'spill file')
    if (how === 'exit') host.endInput()
    else host.kill(how)
    await within('end of the host', host.ended)
    await untilGone(of)
    await until(() => readdirSync(spills).length === 0, 'removal of the spill files')
  })

  test('items 22, 75: a failed spawn that nobody looks at ends no host', async () => {
    const end = await ending(
      scene(),
      `const handle = runtime.spawn(spec(['/nonexistent/program'], { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } }))
       report([typeof handle.stdin, typeof handle.stdout])
       void handle.started; void handle.exited; void handle.done`,
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [['object', 'object']] })
  })
})

describe('the event loop', () => {
  /** Stays for a while, then makes the log. */
  const WORKS = `['sh', '-c', 'echo ready; sleep 0.3; echo worked >>"$LOG"; exit 4']`

  test('a live tree keeps it going, also where nobody looks at its end', async () => {
    const of = scene()
    expect(await ending(of, `await start(${WORKS})`)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(of.logged()).toEqual(['worked'])
  })

  test('a live terminal keeps it going', async () => {
    const of = scene()
    expect(await ending(of, `await startTerminal(${WORKS})`)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(of.logged()).toEqual(['worked'])
  })

  test.each(['start', 'startTerminal'])('one that is not referenced lets it end, and is killed then (%s)', async (start) => {
    const of = scene()
    const end = await ending(of, `const tree = await ${start}(); report(tree.unref() === tree)`)
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [true] })
    await untilGone(of)
    expect(of.logged()).toEqual([])
  })

  test.each(['start', 'startTerminal'])('one that is referenced again keeps it going (%s)', async (start) => {
    const of = scene()
    const end = await ending(of, `const tree = await ${start}(${WORKS}); report(tree.unref().ref() === tree); report(await tree.done)`)
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [true, { exitCode: 4, signal: null }] })
    expect(of.logged()).toEqual(['worked'])
  })

  test('raw streams of a tree that is not referenced let it end', async () => {
    const of = scene()
    const end = await ending(
      of,
      `const handle = runtime.spawn(spec(logsTerm, { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' }, control: true }))
       await handle.started
       handle.stdout.resume()
       handle.stderr.resume()
       handle.control.resume()
       handle.stdin.write('unread')
       handle.unref()`,
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '' })
    await untilGone(of)
  })

  test('an output of a terminal that is destroyed while it is read keeps nothing going', async () => {
    const end = await ending(
      scene(),
      `const terminal = await startTerminal(['sh', '-c', 'echo ready; read -r go; exit 4'])
       terminal.output.resume()
       // A turn of the loop later the read waits.
       setImmediate(() => {
         terminal.output.destroy()
         terminal.write('go\\n')
       })
       report(await terminal.done)`,
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [{ exitCode: 4, signal: null }] })
  })

  test('a runtime without trees keeps nothing going, disposed of or not', async () => {
    expect(await ending(scene(), '')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await ending(scene(), 'await runtime.dispose()')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await ending(scene(), 'const handle = await start(); handle.terminate(); await handle.done')).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('what is left of a tree keeps nothing going by itself', async () => {
    const of = scene()
    const script = `(trap 'echo TERM >>"$LOG"' TERM; echo ready; exec >/dev/null 2>&1; while :; do sleep 1; done) &`
    const end = await ending(of, `const handle = await start(['sh', '-c', ${JSON.stringify(script)}]); report(await handle.done)`)
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [{ exitCode: 0, signal: null }] })
    await untilGone(of)
    expect(of.logged()).toEqual([])
  })
})
