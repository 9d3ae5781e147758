/**
 * What keeps the event loop alive while a tree outlives its target: a wait until its signal ends it, and a held stream until the tree is
 * unreferenced.
 */
import { expect, test } from 'vitest'
import { runHost } from './fixture/host.js'

test('item 69: a wait keeps the event loop alive until its signal ends it, and no longer', async () => {
  const { exitCode, reports } = await runHost(`
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const handle = runtime.spawn({
      argv: ['sh', '-c', 'sleep 300 & exit 3'], cwd: '/', graceMs: 5000,
      stdio: { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
    })
    report(await handle.done)
    const given = new AbortController()
    const wait = handle.waitForExit(given.signal)
    setImmediate(() => given.abort())
    report(await wait)
  `)
  expect(reports).toEqual([{ exitCode: 3, signal: null }, false])
  expect(exitCode).toBe(0)
})

test('item 67: an unreferenced tree whose streams are still held does not keep the event loop alive for its drain', async () => {
  const { exitCode, reports } = await runHost(`
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const runtime = new LocalSubprocessRuntime()
    const handle = runtime.spawn({
      argv: ['sh', '-c', 'sleep 300 & exit 3'], cwd: '/', graceMs: 3_600_000,
      stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' },
    })
    handle.stdout.resume()
    report(await handle.exited)
    // A few turns later it is the stream that is waited for.
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    handle.unref()
  `)
  expect(reports).toEqual([{ exitCode: 3, signal: null }])
  expect(exitCode).toBe(0)
})
