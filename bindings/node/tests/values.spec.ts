/**
 * Values as a host hands them in that has names in its own language, and a configuration that nobody checked.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { OutputCollector, scrubbedParentEnv } from 'dsh-subprocess'
import { openCase } from './fixture/runtime.js'
import { thrown, within } from './fixture/wait.js'

describe('the environment', () => {
  test('item 2: a name that begins with a letter of more than one byte reaches the child', async () => {
    const name = 'ÜBERSICHT'
    process.env[name] = 'ja'
    onTestFinished(() => {
      delete process.env[name]
    })
    expect(scrubbedParentEnv()[name]).toBe('ja')
    const handle = openCase().spawn(['env'])
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text.split('\n')).toContain(`${name}=ja`)
  })
})

describe('what nobody checked', () => {
  test('item 45: a spill directory that is no path is refused by name, and the next one is taken', async () => {
    const { runtime, spawn, directory } = openCase()
    Object.assign(runtime.internals, { spillDir: 5 })
    expect(thrown(() => spawn(['true']))).toEqual(new TypeError('internals.spillDir must be a path, not 5'))
    runtime.internals.spillDir = directory
    const stdout = { maxBytes: 4, spill: { maxBytes: 1_024 } }
    const handle = spawn(['echo', 'longer'], { stdio: { stdin: 'ignore', stdout, stderr: 'inherit' } })
    await within('end', handle.done)
    expect(handle.collected.stdout?.readFrom(0).spillPath?.startsWith(`${directory}/`)).toBe(true)
  })

  test('item 45: a label that is no text is refused by name', () => {
    expect(thrown(() => new OutputCollector(8, undefined, 5n as unknown as string))).toEqual(
      new TypeError("label must be letters, digits, '.', '_' and '-', not a value of type bigint"),
    )
  })
})
