/**
 * Section G of the contract: signals for processes that this runtime did not start.
 *
 * Item 74's taskkill is Windows' own, and refused elsewhere. Item 115 is the remote world's; here it is a promise of `killGroup`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { killGroup, taskkillProcessTree } from 'dsh-subprocess'
import { isAlive } from './fixture/runtime.js'
import { thrown, until, within } from './fixture/wait.js'

test('item 66: where there is no such group the process alone is signalled', async () => {
  // It is in this process's group and leads none.
  const child = spawn('sleep', ['300'], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const ended = once(child, 'exit')
  killGroup(child.pid as number, 'SIGTERM')
  expect(await within('end', ended)).toEqual([null, 'SIGTERM'])
})

test('item 66: a group is signalled as a whole', async () => {
  const child = spawn('sh', ['-c', 'sleep 300 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  onTestFinished(() => killGroup(child.pid as number, 'SIGKILL'))
  const [line] = (await within('member', once(child.stdout, 'data'))) as [Buffer]
  const ended = once(child, 'exit')
  killGroup(child.pid as number, 'SIGTERM')
  expect(await within('end', ended)).toEqual([null, 'SIGTERM'])
  await until(() => !isAlive(Number(line.toString())), 'end of the member')
})

test('item 66: a signal that reaches nobody is no error', async () => {
  const child = spawn('true', { stdio: 'ignore', detached: true })
  await within('end', once(child, 'exit'))
  killGroup(child.pid as number, 'SIGTERM')
  killGroup(2 ** 22 + 1, 'SIGKILL')
})

test.each([1, 0, -1, -2, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('item 66, 115, O6: no signal is sent by the number %d', (pid) => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  onTestFinished(() => kill.mockRestore())
  killGroup(pid, 'SIGKILL')
  expect(kill).not.toHaveBeenCalled()
})

test('item 74: taskkill is for Windows, and refused here', () => {
  const reason = thrown(() => taskkillProcessTree(process.pid))
  expect(reason).toBeInstanceOf(Error)
  expect((reason as Error).message).toContain('Windows')
  expect((reason as Error).message).toContain(process.platform)
})
