/**
 * Section J of the contract is the remote provider's. What it does because of the distance between the host and its processes does not
 * apply to this machine: start by publication of a group id (107), environment and output by files and frames (109, 110), control-plane
 * requests (116), bootstrap shells (115). Each of these items stands for a promise all the same, of which the local world makes its own
 * version; that is what is tested here, under the item's number.
 */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { killGroup, type SubprocessOutcome } from 'dsh-subprocess'
import { freeze } from './fixture/freezer.js'
import { startHost } from './fixture/host.js'
import { ignoresTerm, leavesHolder, READY, shell, sleeps } from './fixture/probe.js'
import { isAlive, isRoot, MARKER, openCase, tiers, untilGone } from './fixture/runtime.js'
import { readAll, rejection, until, untilCollected, untilRead, within } from './fixture/wait.js'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

/** Longer than any test: what ends before it did not need it. */
const NEVER_MS = 1_000_000

/** The command lines of all processes: what anybody on this machine may read. */
const commandLines = (): string =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      } catch {
        // It has ended since the directory was read.
        return ''
      }
    })
    .join('\n')

describe.each(tiers)('%s', (ownership) => {
  test('item 107: the pid is there at once, above 1, and is the session and the group of the target', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('read -r pid comm state parent group session rest </proc/$$/stat; echo $pid $group $session'))
    const { pid } = handle
    expect(pid).toBeGreaterThan(1)
    expect(await handle.started).toBe(pid)
    await within('end', handle.done)
    expect(handle.collected.stdout?.readFrom(0).text).toBe(`${pid} ${pid} ${pid}\n`)
  })

  test('item 108: a termination before the target runs settles with SIGTERM, and nothing is left', async () => {
    const of = openCase({ ownership })
    const handles = Array.from({ length: 20 }, () => {
      const handle = of.spawn(sleeps(), { graceMs: NEVER_MS })
      handle.terminate()
      return handle
    })
    for (const handle of handles) {
      expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
      expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    }
    expect(of.processes()).toEqual([])
  })

  test('item 108: so does a disposal', async () => {
    const of = openCase({ ownership })
    const handles = Array.from({ length: 20 }, () => of.spawn(sleeps(), { graceMs: NEVER_MS }))
    await within('disposal', of.runtime.dispose())
    expect(of.processes()).toEqual([])
    for (const handle of handles) expect(await handle.done).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('item 109: neither the environment nor the input of a child is on any command line', async () => {
    const secret = `secret-${process.pid}-${ownership}`
    const of = openCase({ ownership })
    const handle = of.spawn(shell('cat >/dev/null; echo "${#CASE_TOKEN}"; echo ready; exec sleep 300'), {
      env: { CASE_TOKEN: secret },
      stdio: { stdin: { data: secret }, stdout: { maxBytes: 4096 }, stderr: { maxBytes: 4096 } },
    })
    expect(await untilCollected(handle.collected.stdout, READY)).toBe(`${secret.length}\n${READY}`)
    // The child's own is among them by then.
    await until(() => commandLines().includes('sleep\x00300'), 'exec of the child')
    expect(commandLines().includes(secret)).toBe(false)
  })

  test('item 110: output is complete and unchanged, collected, spilled and raw', async () => {
    const of = openCase({ ownership })
    const script = 'head -c 3000000 /dev/urandom >data; cat data; cat data >&2'
    const handle = of.spawn(shell(script), {
      stdio: { stdin: 'ignore', stdout: 'pipe', stderr: { maxBytes: 1000, spill: { maxBytes: 10_000_000 } } },
    })
    const raw = await readAll(handle.stdout)
    await within('end', handle.done)
    const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
    const wanted = digest(readFileSync(join(of.directory, 'data')))
    expect(digest(raw)).toBe(wanted)
    const { spillPath, nextOffset, lossy } = handle.collected.stderr?.readFrom(0) ?? {}
    expect({ nextOffset, lossy }).toEqual({ nextOffset: 3_000_000, lossy: true })
    expect(digest(readFileSync(spillPath as string))).toBe(wanted)
  })

  test('item 111: the exit is told apart from the end of the streams, which is waited for no longer than the drain', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(leavesHolder(), { drainMs: NEVER_MS, graceMs: NEVER_MS })
    let settled: SubprocessOutcome | undefined
    void handle.done.then((outcome) => (settled = outcome))
    expect(await within('exit', handle.exited)).toEqual({ exitCode: 0, signal: null })
    await untilCollected(handle.collected.stdout, READY)
    expect(settled).toBeUndefined()
    expect(handle.collected.stdout?.sealed).toBe(false)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })

    const short = of.spawn(leavesHolder(), { drainMs: 50, graceMs: NEVER_MS })
    expect(await within('end', short.done)).toEqual({ exitCode: 0, signal: null })
    expect(short.collected.stdout?.readFrom(0).text).toBe(READY)
    expect((await short.holders()).map(({ stream }) => stream).sort()).toEqual(['stderr', 'stdout'])
    short.terminate()
  })

  test('item 111: a raw stream that nobody reads holds the child up, and all of it is there later', async () => {
    const of = openCase({ ownership })
    // It says when the pipe takes nothing any more.
    const script = `
import os, select
os.set_blocking(1, False)
total = 0
while total < 1 << 26:
    try:
        total += os.write(1, b'x' * 4096)
    except BlockingIOError:
        if not select.select([], [1], [], 2)[1]:
            break
os.write(2, b'%d\\n' % total)
os.set_blocking(1, True)
os.write(1, b'end')
`
    const handle = of.spawn(['python3', '-c', script], { stdio: { stdin: 'ignore', stdout: 'pipe', stderr: { maxBytes: 4096 } } })
    // Made, and not read.
    const { stdout } = handle
    const total = Number.parseInt(await untilCollected(handle.collected.stderr, '\n'), 10)
    expect(total).toBeGreaterThan(0)
    expect(total).toBeLessThan(1 << 22)
    expect((await readAll(stdout)).toString()).toBe(`${'x'.repeat(total)}end`)
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
  })

  test('item 112: when the tree is gone its streams are over, and only then does a wait say so', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(ignoresTerm(), {
      graceMs: 100,
      stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' },
    })
    await untilRead(handle.stdout, READY)
    const stdin = handle.stdin
    const closed = new Promise((resolve) => stdin?.once('close', resolve))
    handle.terminate()
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)
    expect(of.processes()).toEqual([])
    await within('end of the input', closed)
    expect((await readAll(handle.stdout)).toString()).toBe('')
  })

  test('item 113: an exit code wins over the termination that was asked for', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(shell('trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done'), { graceMs: NEVER_MS })
    await untilCollected(handle.collected.stdout, READY)
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: 7, signal: null })
  })

  test('item 113: a signal that somebody else sent is told as what it is', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(sleeps())
    await untilCollected(handle.collected.stdout, READY)
    process.kill(handle.pid, 'SIGUSR2')
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGUSR2' })
  })

  test('item 114: a spawn that fails rejects when nothing of it is left', async () => {
    const of = openCase({ ownership })
    const handle = of.spawn(['no-such-program'])
    expect(await rejection(handle.done)).toMatchObject({ code: 'ENOENT', mayHaveStarted: 'no' })
    expect(of.processes()).toEqual([])
    expect(handle.pid).toBe(-1)
    expect(await handle.waitForExit()).toBe(true)
    expect(handle.terminate()).toBeUndefined()
    expect(handle.terminateForHostExit()).toBeUndefined()
  })

  test('item 115: a terminal shows what its program prints and not a byte more', async () => {
    const of = openCase({ ownership })
    const terminal = await of.spawnTerminal(['printf', 'x'])
    expect((await readAll(terminal.output)).toString()).toBe('x')
  })

  if (isRoot) {
    test('as root: item 112: a wait rejects while a member lives that nothing ends, and a later one may succeed', async () => {
      const of = openCase({ ownership, killBoundMs: 200 })
      const handle = of.spawn(shell('sleep 300 & echo $!; echo ready; wait'), { graceMs: 100 })
      const member = Number.parseInt(await untilCollected(handle.collected.stdout, READY), 10)
      const thaw = await freeze(member)
      handle.terminate()
      const error = await rejection(handle.waitForExit())
      expect(error).toMatchObject({ kind: 'Survivors', mayHaveStarted: 'yes' })
      expect((error as Error).message).toContain(String(member))
      expect(isAlive(member)).toBe(true)
      await thaw()
      handle.terminate()
      const gone = async (): Promise<boolean> => {
        for (;;) {
          // A wait that is asked before the runtime has seen the end may still name the survivor.
          const answer = await handle.waitForExit().catch((reason: unknown) => reason)
          if (typeof answer === 'boolean') return answer
          expect(answer).toMatchObject({ kind: 'Survivors' })
        }
      }
      expect(await within('end of the tree', gone())).toBe(true)
    })
  }
})

test('item 108: an abort before the target runs is a termination, and the program leaves no trace', async () => {
  const of = openCase()
  const controller = new AbortController()
  const handle = of.spawn(sleeps(), { signal: controller.signal, graceMs: NEVER_MS })
  controller.abort()
  expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
  await untilGone(of)
})

test.each([0, 1, -1, -2, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('item 115: killGroup refuses the id %s', (id) => {
  // Never the real one: -1 is everybody.
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  expect(killGroup(id, 'SIGCONT')).toBeUndefined()
  expect(kill).not.toHaveBeenCalled()
})

test('item 115: killGroup signals the group that the id names', async () => {
  const of = openCase({ ownership: 'process_group' })
  const handle = of.spawn(shell('sleep 300 & echo ready; wait'))
  await untilCollected(handle.collected.stdout, READY)
  killGroup(handle.pid, 'SIGKILL')
  expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGKILL' })
  await untilGone(of)
  // Nobody has the id any more, and that is no failure.
  expect(killGroup(handle.pid, 'SIGKILL')).toBeUndefined()
})

test('item 116: nothing polls: no timer runs while a tree is waited for by many', async () => {
  const of = openCase()
  const host = startHost(
    `
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const handle = runtime.spawn({
      argv: ['sh', '-c', 'echo ready; exec sleep 300'], cwd: '/', graceMs: 1e6, env: { ${MARKER}: process.argv[1] },
      stdio: { stdin: 'ignore', stdout: { maxBytes: 100 }, stderr: 'pipe' },
    })
    await handle.collected.stdout.changed(0)
    const waits = Array.from({ length: 20 }, () => handle.waitForExit())
    setImmediate(() => {
      report(process.getActiveResourcesInfo().filter((name) => name === 'Timeout'))
      handle.terminate()
      Promise.all(waits).then(report).then(() => runtime.dispose())
    })
    `,
    { args: [of.marker] },
  )
  expect(await host.next()).toEqual([])
  expect(await host.next()).toEqual(Array.from({ length: 20 }, () => true))
  expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: 0 })
})
