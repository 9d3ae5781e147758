/**
 * Waits for a tree that their signal has ended, while the tree lives on: they end alone, and are not kept.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openCase } from './fixture/runtime.js'
import { until, within } from './fixture/wait.js'

const SLEEPER = ['sleep', '300']

test('item 70: a wait that its signal has ended leaves nothing behind, although the tree lives on', async () => {
  const handle = openCase().spawn(SLEEPER)
  const signals: WeakRef<AbortSignal>[] = []
  for (let waits = 0; waits < 20; waits++) {
    const deadline = new AbortController()
    signals.push(new WeakRef(deadline.signal))
    const wait = handle.waitForExit(deadline.signal)
    deadline.abort()
    expect(await within('end of the wait', wait)).toBe(false)
  }
  // What was looked at in this turn is kept until the next.
  await turn()
  await until(() => {
    globalThis.gc?.()
    // The last may still be on the stack.
    return signals.filter((signal) => signal.deref() !== undefined).length <= 1
  }, 'collection of the signals')
  expect(await handle.waitForExit(AbortSignal.abort())).toBe(false)
})

test('item 70: one wait that its signal has ended ends no other, and each of those is told of the end', async () => {
  const handle = openCase().spawn(SLEEPER)
  const [given, kept] = [new AbortController(), new AbortController()]
  const waits = [handle.waitForExit(given.signal), handle.waitForExit(kept.signal), handle.waitForExit(kept.signal)]
  given.abort()
  expect(await within('end of the first wait', waits[0]!)).toBe(false)
  handle.terminate()
  expect(await within('end of the tree', Promise.all(waits))).toEqual([false, true, true])
  expect(await within('answer about a tree that is gone', handle.waitForExit(new AbortController().signal))).toBe(true)
})
