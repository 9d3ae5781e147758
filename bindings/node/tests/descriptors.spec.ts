/**
 * The descriptors of pipes that were asked for and never looked at: they are closed with the tree, not with the garbage.
 */
import { describe, expect, test } from 'vitest'
import type { LocalSubprocessHandle, SubprocessStdio } from 'dsh-subprocess'
import { openCase, openDescriptors, untilNoDescriptorLeaks } from './fixture/runtime.js'
import { nextEvent, readAll, rejection, within } from './fixture/wait.js'

const RAW: SubprocessStdio = { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' }
const MANY = 25

describe('pipes that nobody looks at', () => {
  test('items 22 and 35: those of spawns that fail are closed', async () => {
    const { spawn } = openCase()
    await rejection(spawn(['no-such-program'], { stdio: RAW, control: true }).done)
    const before = openDescriptors()
    const handles: LocalSubprocessHandle[] = []
    for (let spawned = 0; spawned < MANY; spawned++) handles.push(spawn(['no-such-program'], { stdio: RAW, control: true }))
    for (const { done } of handles) await rejection(done)
    await untilNoDescriptorLeaks(before)
    // A handle that is still there still answers.
    expect(handles.every(({ pid }) => pid === -1)).toBe(true)
    expect(await readAll(handles[0]?.stdout)).toHaveLength(0)
  })

  test('item 181: control pipes that say nothing are closed with their trees', async () => {
    const { spawn } = openCase()
    const run = async (): Promise<LocalSubprocessHandle> => {
      const handle = spawn(['true'], { stdio: RAW, control: true })
      await within('end', handle.done)
      await within('end of the tree', handle.waitForExit())
      return handle
    }
    await run()
    const before = openDescriptors()
    const handles = await Promise.all(Array.from({ length: MANY }, run))
    await untilNoDescriptorLeaks(before)
    expect(handles[0]?.control?.destroyed).toBe(true)
  })

  test('item 181: what was said is there after the tree, and its end follows', async () => {
    const handle = openCase().spawn(['sh', '-c', 'eval "echo said >&$DSH_SUBPROCESS_CONTROL"'], { stdio: RAW, control: true })
    await within('end', handle.done)
    await within('end of the tree', handle.waitForExit())
    expect((await readAll(handle.control)).toString()).toBe('said\n')
  })

  test('item 35: what was printed is there after the tree, and its end follows', async () => {
    const handle = openCase().spawn(['echo', 'printed'], { stdio: RAW })
    await within('end of the tree', handle.waitForExit())
    await within('end', handle.done)
    const { stdout } = handle
    expect(String(await nextEvent(stdout!, 'data'))).toBe('printed\n')
    await readAll(stdout)
  })
})
