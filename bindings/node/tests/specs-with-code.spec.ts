/**
 * Sections C and I of the contract: specs that are no plain data. A harness hands its configuration on as proxies, and whatever has getters
 * runs code in the middle of a spawn.
 */
import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { SubprocessSpawnSpec } from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { prints, sleeps } from './fixture/probe.js'
import { openCase, tiers } from './fixture/runtime.js'
import { readAll, thrown, within } from './fixture/wait.js'

test('item 20: an argv that is reached through a proxy runs', async () => {
  const of = openCase()
  const handle = of.spawn(new Proxy(prints('text'), {}))
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  expect(handle.collected.stdout?.readFrom(0).text).toBe('text')
})

test('item 83: so does that of a terminal', async () => {
  const of = openCase()
  const terminal = await of.spawnTerminal(new Proxy(prints('text'), {}))
  expect((await readAll(terminal.output)).toString()).toBe('text')
})

test('item 20: each argument is asked for once, so that what was checked is what runs', async () => {
  const of = openCase()
  const asked = vi.fn().mockReturnValueOnce('once').mockReturnValue(7)
  const argv = ['echo', '']
  Object.defineProperty(argv, 1, { get: asked, enumerable: true })
  const handle = of.spawn(argv)
  await within('outcome', handle.done)
  expect(asked).toHaveBeenCalledTimes(1)
  expect(handle.collected.stdout?.readFrom(0).text).toBe('once\n')
})

test('item 61: the signal is asked for once, and that one ends the tree', async () => {
  const of = openCase()
  const controller = new AbortController()
  const asked = vi.fn(() => controller.signal)
  const handle = of.runtime.spawn(Object.defineProperty(of.spec(sleeps()), 'signal', { get: asked, enumerable: true }))
  expect(asked).toHaveBeenCalledTimes(1)
  controller.abort()
  expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
})

test.each(tiers)('item 61: a signal that aborts while the rest of the spec is looked at ends the tree (%s)', async (ownership) => {
  const of = openCase({ ownership })
  const controller = new AbortController()
  const cwd = (): string => {
    controller.abort()
    return of.directory
  }
  const spec = of.spec(sleeps(), { signal: controller.signal })
  const handle = of.runtime.spawn(Object.defineProperty(spec, 'cwd', { get: cwd, enumerable: true }))
  expect(await within('outcome', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
})

test('item 61: a signal that cannot be listened to is an error of the spawn, which leaves nothing', async () => {
  const end = await runHost(`
    import { LocalSubprocessRuntime } from 'dsh-subprocess'
    const listen = () => { throw new Error('not here') }
    const signal = Object.defineProperty(new AbortController().signal, 'addEventListener', { value: listen })
    const stdio = { stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' }
    try {
      new LocalSubprocessRuntime().spawn({ argv: ['sleep', '300'], cwd: '/', stdio, graceMs: 1_000, signal })
    } catch (error) {
      report(error.message)
    }
  `)
  // The event loop of a host ends by itself when nothing is left, and not before.
  expect(end).toMatchObject({ exitCode: 0, stderr: '', reports: ['not here'] })
})

test('item 59: what cannot take a listener back is no signal', () => {
  const of = openCase()
  const signal = { aborted: false, addEventListener: () => {} } as unknown as NonNullable<SubprocessSpawnSpec['signal']>
  expect(thrown(() => of.spawn(sleeps(), { signal }))).toBeInstanceOf(TypeError)
  expect(of.processes()).toEqual([])
})

test("item 1: an object in the place of the host's environment may have symbols", async () => {
  const of = openCase()
  const real = process.env
  onTestFinished(() => {
    process.env = real
  })
  process.env = { ...real, [Symbol('of the host')]: 'unseen', OF_THE_HOST: 'seen' }
  const handle = of.spawn(['sh', '-c', 'printf %s "$OF_THE_HOST"'])
  await within('outcome', handle.done)
  expect(handle.collected.stdout?.readFrom(0).text).toBe('seen')
})
