/**
 * Item 64 of the contract: once a tree is known to be gone no signal is sent for it any more, whoever has its number by then.
 *
 * The host is process 1 of a pid namespace, where it may choose the number that the next process gets.
 */
import { expect, test } from 'vitest'
import { runHost } from './fixture/host.js'

const UNSHARE = ['unshare', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child']

const HOST = `
  import { spawn } from 'node:child_process'
  import { once } from 'node:events'
  import { writeFileSync } from 'node:fs'
  import { LocalSubprocessRuntime } from 'dsh-subprocess'

  const [, ownership, script] = process.argv
  const runtime = new LocalSubprocessRuntime({ ownership })
  const start = async (script, signal) => {
    const handle = runtime.spawn({
      argv: ['sh', '-c', script], cwd: '/', graceMs: 500, signal,
      stdio: { stdin: 'ignore', stdout: { maxBytes: 64 }, stderr: 'inherit' },
    })
    // It is all that is printed.
    await handle.collected.stdout.changed('ready'.length)
    return handle
  }

  const controller = new AbortController()
  const handle = await start(script, controller.signal)
  const { pid } = handle
  let settled = false
  handle.done.then(() => { settled = true })
  // The deadline of its SIGKILL is still to come when the tree is gone.
  handle.terminate()
  report({ gone: await handle.waitForExit(), settled })

  let stranger
  for (;;) {
    writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1))
    stranger = spawn('cat', { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
    if (stranger.pid === pid) break
    // A thread of this process, or somebody else, came first.
    stranger.kill('SIGKILL')
    await once(stranger, 'close')
  }
  const ended = once(stranger, 'close')
  let text = ''
  stranger.stdout.on('data', (chunk) => { text += chunk })

  handle.terminate()
  handle.terminateForHostExit()
  controller.abort()
  // Its deadline is later than the first one's.
  const stubborn = await start('trap "" TERM; echo ready; while :; do sleep 1; done')
  stubborn.terminate()
  report(await stubborn.done)
  await handle.done
  await runtime.dispose()
  stranger.stdin.end('alive')
  report(await ended)
  report(text)
`

test.each([
  ['reaper', 'echo ready; exec sleep 300', true],
  ['process_group', 'echo ready; exec sleep 300', true],
  // Its output is held from outside the group: done waits for the drain, which must not keep the tree's signals armed.
  ['process_group', 'setsid sh -c "echo ready; exec sleep 300" & exec sleep 300', false],
])('item 64 on %s: nothing reaches whoever got the number of a tree that is gone (%s)', async (ownership, script, quick) => {
  const end = await runHost(HOST, { args: [ownership, script], through: UNSHARE })
  expect(end.exitCode, end.stderr).toBe(0)
  expect(end.reports).toEqual([
    { gone: true, settled: expect.any(Boolean) as boolean },
    { exitCode: null, signal: 'SIGKILL' },
    [0, null],
    'alive',
  ])
  if (!quick) expect(end.reports[0]).toMatchObject({ settled: false })
})
