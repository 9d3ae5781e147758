/**
 * Section H of the contract in worker threads: each has its own runtimes, its own environment, and an end of its own.
 */
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runHost, startHost } from './fixture/host.js'
import { isAlive, processesMarked, tiers, untilGone } from './fixture/runtime.js'
import { until, within } from './fixture/wait.js'

/**
 * A host, and what its workers share with it: `start`, which resolves with a handle whose program runs until it is ended. A worker is a
 * script of the same kind, which says something with `say`.
 */
const COMMON = `
  const start = async (runtime, marker, argv = ['sh', '-c', 'trap "" TERM HUP; echo ready; while :; do sleep 1; done']) => {
    const handle = runtime.spawn({
      argv, cwd: '/', graceMs: 200, env: { DSH_CASE: marker },
      stdio: { stdin: 'ignore', stdout: { maxBytes: 65_536 }, stderr: { maxBytes: 65_536 } },
    })
    // It is all that is printed.
    await handle.collected.stdout.changed('ready'.length)
    return handle
  }
`

const HOST = `
  import { once } from 'node:events'
  import { Worker } from 'node:worker_threads'
  import { LocalSubprocessRuntime } from 'dsh-subprocess'
  ${COMMON}
  const [, marker, ownership] = process.argv
  const PRELUDE = ${JSON.stringify(`
    const { parentPort, workerData } = require('node:worker_threads')
    const { LocalSubprocessRuntime, scrubbedParentEnv, spawnSubprocess } = require('dsh-subprocess')
    const { marker, ownership } = workerData
    const say = (value) => parentPort.postMessage(value)
    ${COMMON}
  `)}
  // The host's own options make a module of every script.
  const options = (marker) => ({ eval: true, execArgv: [], workerData: { marker, ownership } })
  const worker = (script, marker) => new Worker(PRELUDE + ';(async () => {' + script + '})()', options(marker))
  const hears = async (worker) => (await once(worker, 'message'))[0]
`

/** A marker of processes that end with the test. */
function marked(): string {
  const marker = randomUUID()
  onTestFinished(() => {
    for (const pid of processesMarked(marker)) process.kill(pid, 'SIGKILL')
  })
  return marker
}

describe.each(tiers)('a worker, on %s', (ownership) => {
  test.each([
    ['is terminated', '', 'await first.terminate(); await ended'],
    ['exits', 'parentPort.once("message", () => process.exit(3))', 'first.postMessage("exit"); await ended'],
    [
      'fails',
      'parentPort.once("message", () => { throw new Error("of the worker") })',
      'first.on("error", () => {}); first.postMessage("fail"); await ended',
    ],
    ['has nothing more to do', 'handle.unref()', 'await ended'],
  ])('that %s takes its own trees with it, and nobody else\'s', async (_, end, wait) => {
    const [own, others] = [marked(), marked()]
    const host = startHost(
      `${HOST}
       const [, , , others] = process.argv
       const runtime = new LocalSubprocessRuntime({ ownership })
       const mine = await start(runtime, others)
       const script = 'const handle = await start(new LocalSubprocessRuntime({ ownership }), marker); say(handle.pid);'
       const second = worker(script, others)
       report([mine.pid, await hears(second)])
       const first = worker(script + ${JSON.stringify(end)}, marker)
       const ended = new Promise((resolve) => first.once('exit', resolve))
       report(await hears(first))
       for await (const line of input) {
         if (line === 'end') { ${wait}; report('ended') }
         else break
       }
       await second.terminate()
       report((await start(runtime, others)).pid)
       await runtime.dispose()
       process.exit(0)`,
      { args: [own, ownership, others] },
    )
    const alive = (await host.next()) as number[]
    const doomed = (await host.next()) as number
    if (end !== 'handle.unref()') expect(isAlive(doomed)).toBe(true)
    host.send('end')
    expect(await host.next()).toBe('ended')
    await until(() => processesMarked(own).length === 0, 'end of the worker\'s trees')
    for (const pid of alive) expect(isAlive(pid)).toBe(true)
    host.send('done')
    expect(await host.next()).toBeGreaterThan(0)
    expect(await within('end of the host', host.ended)).toMatchObject({ exitCode: 0, stderr: '' })
    await untilGone({ processes: () => processesMarked(others) })
  })

  test('that is terminated while it starts trees leaves none, and the host goes on', async () => {
    const marker = marked()
    const end = await runHost(
      `${HOST}
       for (let round = 0; round < 10; round++) {
         const busy = worker(\`
           const runtime = new LocalSubprocessRuntime({ ownership })
           const spawn = () => runtime.spawn({
             argv: ['sleep', '300'], cwd: '/', graceMs: 200, env: { DSH_CASE: marker },
             stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 } },
           })
           say('begins')
           for (let more = 0; more < 30; more++) { spawn().stdout.resume(); if (more % 5 === 0) await new Promise(setImmediate) }
           say('has begun')
         \`, marker)
         await hears(busy)
         if (round % 2 === 1) await hears(busy)
         await busy.terminate()
       }
       const handle = await start(new LocalSubprocessRuntime({ ownership }), marker, ['sh', '-c', 'echo ready; exit 6'])
       report(await handle.done)`,
      { args: [marker, ownership] },
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: [{ exitCode: 6, signal: null }] })
    await untilGone({ processes: () => processesMarked(marker) })
  })
})

describe('workers', () => {
  test('work beside each other and the main thread', async () => {
    const marker = marked()
    const end = await runHost(
      `${HOST}
       const work = \`
         const runtime = new LocalSubprocessRuntime()
         const results = await Promise.all(Array.from({ length: 20 }, async (_, index) => {
           const handle = runtime.spawn({
             argv: ['sh', '-c', 'cat; printf err >&2; exit "$1"', 'sh', String(index)], cwd: '/', graceMs: 5_000,
             env: { DSH_CASE: marker }, stdio: { stdin: { data: 'x'.repeat(100_000) }, stdout: 'pipe', stderr: { maxBytes: 64 } },
           })
           let bytes = 0
           handle.stdout.on('data', (chunk) => { bytes += chunk.length })
           return [(await handle.done).exitCode, bytes, handle.collected.stderr.readFrom(0).text]
         }))
         const terminal = await runtime.spawnTerminal({ argv: ['sh', '-c', 'printf typed'], cwd: '/', rows: 24, cols: 80, graceMs: 5_000 })
         let text = ''
         for await (const chunk of terminal.output) text += chunk
         await runtime.dispose()
         say([results, text])
       \`
       const workers = Array.from({ length: 6 }, () => worker(work, marker))
       const runtime = new LocalSubprocessRuntime()
       const mine = await start(runtime, marker)
       for (const answer of await Promise.all(workers.map(hears))) report(answer)
       mine.terminate()
       report(await mine.done)
       await runtime.dispose()`,
      { args: [marker] },
    )
    expect(end, end.stderr).toMatchObject({ exitCode: 0, stderr: '' })
    const results = Array.from({ length: 20 }, (_, index) => [index, 100_000, 'err'])
    expect(end.reports).toEqual([...Array.from({ length: 6 }, () => [results, 'typed']), { exitCode: null, signal: 'SIGKILL' }])
  })

  test('item 1: have the environment of their own thread', async () => {
    const end = await runHost(
      `${HOST}
       const printed = async (spawn) => {
         const handle = spawn({
           argv: ['sh', '-c', 'echo "$ONLY_HERE,$FROM_MAIN,$WORKER_TOKEN"'], cwd: '/', graceMs: 5_000,
           stdio: { stdin: 'ignore', stdout: { maxBytes: 64 }, stderr: 'inherit' },
         })
         await handle.done
         return handle.collected.stdout.readFrom(0).text
       }
       process.env.FROM_MAIN = 'main'
       const other = worker(\`
         process.env.ONLY_HERE = 'here'
         process.env.WORKER_TOKEN = 'secret'
         process.env.FROM_MAIN = 'changed'
         const printed = \${printed}
         const scrubbed = scrubbedParentEnv()
         say([await printed(spawnSubprocess), scrubbed.ONLY_HERE, scrubbed.FROM_MAIN, 'WORKER_TOKEN' in scrubbed])
       \`, '')
       report(await hears(other))
       const runtime = new LocalSubprocessRuntime()
       report(await printed((spec) => runtime.spawn(spec)))
       await runtime.dispose()`,
    )
    expect(end, end.stderr).toMatchObject({ exitCode: 0, reports: [['here,changed,\n', 'here', 'changed', false], ',main,\n'] })
  })

  test('item 77: have an exit listener of their own', async () => {
    const end = await runHost(
      `${HOST}
       const counted = worker(\`
         const before = process.listenerCount('exit')
         const runtime = new LocalSubprocessRuntime()
         const mounted = process.listenerCount('exit')
         await runtime.dispose()
         say([mounted - before, process.listenerCount('exit') - before])
       \`, '')
       const before = process.listenerCount('exit')
       report(await hears(counted))
       report(process.listenerCount('exit') - before)`,
    )
    expect(end, end.stderr).toMatchObject({ exitCode: 0, reports: [[1, 0], 0] })
  })
})
