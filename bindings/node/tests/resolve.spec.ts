/**
 * Section B of the contract: where an executable is.
 *
 * Not applicable here: item 16 and the backslash of item 13 are Windows'. In their place: `PATHEXT` means nothing, and a backslash is a
 * character of a name as any other.
 */
import { getEventListeners } from 'node:events'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SubprocessError } from 'dsh-subprocess'
import { openCase, temporaryDirectory } from './fixture/runtime.js'
import { rejection, within } from './fixture/wait.js'

/** Writes a program. */
function program(path: string, mode = 0o755): string {
  writeFileSync(path, '#!/bin/sh\n')
  chmodSync(path, mode)
  return path
}

/** Moves this process for one test. */
function enter(directory: string): void {
  const before = process.cwd()
  process.chdir(directory)
  onTestFinished(() => process.chdir(before))
}

/** Expects a look-up to fail with this text. */
async function expectMiss(lookUp: Promise<string>, message: string): Promise<SubprocessError> {
  const reason = await rejection(lookUp)
  expect(reason).toBeInstanceOf(SubprocessError)
  expect((reason as Error).message).toContain(message)
  return reason as SubprocessError
}

test('item 10: an empty name is refused', async () => {
  await expectMiss(openCase().runtime.resolveExecutable(''), 'executable must be non-empty')
})

test.each(['stop', new Error('a reason of the caller'), { any: 'value' }])(
  'item 11: a signal that has aborted rejects with its own reason: %s',
  async (reason) => {
    const { runtime } = openCase()
    const signal = AbortSignal.abort(reason)
    for (const command of ['sh', '/bin/sh', 'no-such-program-anywhere', '/nonexistent/program']) {
      expect(await rejection(runtime.resolveExecutable(command, {}, signal))).toBe(reason)
    }
    expect(getEventListeners(signal, 'abort')).toEqual([])
  },
)

test('item 11: an abort while the search goes on rejects with the reason of the signal', async () => {
  const { runtime, directory } = openCase()
  const PATH = Array.from({ length: 2_000 }, (_, index) => join(directory, `absent-${index}`)).join(':')
  const abort = new AbortController()
  const lookUp = runtime.resolveExecutable('no-such-program-anywhere', { PATH }, abort.signal)
  abort.abort('stop')
  expect(await rejection(lookUp)).toBe('stop')
  expect(getEventListeners(abort.signal, 'abort')).toEqual([])
})

test('item 11: a search leaves nothing on the signal, and an abort after it changes nothing', async () => {
  const { runtime } = openCase()
  const abort = new AbortController()
  const found = runtime.resolveExecutable('sh', undefined, abort.signal)
  expect(await within('answer', found)).toMatch(/^\/.*\/sh$/)
  expect(getEventListeners(abort.signal, 'abort')).toEqual([])
  abort.abort('too late')
  expect(await found).toMatch(/^\/.*\/sh$/)
})

test('item 12: an absolute path to an executable file is answered verbatim, without its links resolved', async () => {
  const { runtime, directory } = openCase()
  const tool = program(join(directory, 'tool'))
  const link = join(directory, 'link')
  symlinkSync(tool, link)
  mkdirSync(join(directory, 'sub'))
  for (const path of [tool, link, join(directory, 'sub') + '/../tool', directory + '//tool']) {
    expect(await within('answer', runtime.resolveExecutable(path))).toBe(path)
  }
})

test('item 12: whatever is no executable file is refused alike', async () => {
  const { runtime, directory } = openCase()
  const dangling = join(directory, 'dangling')
  symlinkSync(join(directory, 'nowhere'), dangling)
  const refused = [
    join(directory, 'missing'),
    directory,
    program(join(directory, 'plain'), 0o644),
    join(directory, 'plain', 'below'),
    dangling,
    '/dev/null',
  ]
  for (const path of refused) {
    const error = await expectMiss(
      runtime.resolveExecutable(path),
      `command ${JSON.stringify(path)} is not an executable file`,
    )
    expect(error.kind).toBe('ProgramNotExecutable')
  }
})

test.each(['./tool', 'sub/tool', '../tool', 'tool/', './/tool'])(
  'item 13: a relative path is never guessed against a directory: %s',
  async (command) => {
    const { runtime, directory } = openCase()
    mkdirSync(join(directory, 'sub'))
    program(join(directory, 'tool'))
    program(join(directory, 'sub', 'tool'))
    enter(directory)
    await expectMiss(
      runtime.resolveExecutable(command, { PATH: directory }),
      `command ${JSON.stringify(command)} is a relative path; use an absolute path or a bare name`,
    )
  },
)

test('item 13: a backslash is a character of a bare name', async () => {
  const { runtime, directory } = openCase()
  const odd = program(join(directory, 'odd\\name'))
  expect(await within('answer', runtime.resolveExecutable('odd\\name', { PATH: directory }))).toBe(odd)
})

test('item 14: the first executable file on PATH wins; directories and plain files are passed over', async () => {
  const { runtime, directory } = openCase()
  const [first, second, third, fourth] = ['first', 'second', 'third', 'fourth'].map((name) => {
    const path = join(directory, name)
    mkdirSync(path)
    return path
  }) as [string, string, string, string]
  mkdirSync(join(first, 'tool'))
  program(join(second, 'tool'), 0o644)
  const expected = program(join(third, 'tool'))
  program(join(fourth, 'tool'))
  const PATH = [join(directory, 'missing'), first, second, third, fourth].join(':')
  expect(await within('answer', runtime.resolveExecutable('tool', { PATH }))).toBe(expected)
  const reversed = PATH.split(':').reverse().join(':')
  expect(await within('answer', runtime.resolveExecutable('tool', { PATH: reversed }))).toBe(join(fourth, 'tool'))
})

test("item 14: without an explicit PATH the host's is searched, as it is at that moment", async () => {
  const { runtime, directory } = openCase()
  const tool = program(join(directory, 'tool-of-this-moment'))
  await expectMiss(runtime.resolveExecutable('tool-of-this-moment'), 'was not found on PATH')
  const before = process.env['PATH']
  process.env['PATH'] = `${before}:${directory}`
  onTestFinished(() => {
    process.env['PATH'] = before
  })
  expect(await within('answer', runtime.resolveExecutable('tool-of-this-moment'))).toBe(tool)
  // The explicit one replaces it, whole.
  await expectMiss(runtime.resolveExecutable('tool-of-this-moment', { PATH: '/nonexistent' }), 'was not found on PATH')
})

test('item 14: a removed PATH is the default one', async () => {
  const { runtime } = openCase()
  expect(await within('answer', runtime.resolveExecutable('sh', { PATH: undefined }))).toMatch(/^(\/usr)?\/bin\/sh$/)
})

test('item 14: a miss says so, and is of a kind of its own', async () => {
  const { runtime, directory } = openCase()
  const miss = await expectMiss(
    runtime.resolveExecutable('no-such-program-anywhere', { PATH: directory }),
    'command "no-such-program-anywhere" was not found on PATH',
  )
  expect(miss).toMatchObject({ kind: 'ProgramNotFound', code: 'ENOENT' })
  const relative = await expectMiss(runtime.resolveExecutable('./no-such-program'), 'is a relative path')
  expect(relative.kind).toBe('InvalidSpec')
})

test('item 14: a NUL byte in a name is refused', async () => {
  await expectMiss(openCase().runtime.resolveExecutable('sh\0'), 'NUL')
})

test("item 15: relative and empty entries of PATH count from the host's own directory, and the answer is absolute", async () => {
  const { runtime } = openCase()
  const directory = temporaryDirectory()
  mkdirSync(join(directory, 'bin'))
  const here = program(join(directory, 'here'))
  const below = program(join(directory, 'bin', 'below'))
  enter(directory)
  for (const PATH of ['', ':/nonexistent', '/nonexistent:', '/nonexistent::/nonexistent', '.']) {
    const found = await within('answer', runtime.resolveExecutable('here', { PATH }))
    expect(found).toMatch(/^\//)
    expect(join(found)).toBe(here)
  }
  for (const PATH of ['bin', './bin', 'bin/']) {
    expect(join(await within('answer', runtime.resolveExecutable('below', { PATH })))).toBe(below)
  }
})

test('item 16: PATHEXT means nothing here', async () => {
  const { runtime, directory } = openCase()
  const tool = program(join(directory, 'tool.EXE'))
  const env = { PATH: directory, PATHEXT: '.EXE' }
  await expectMiss(runtime.resolveExecutable('tool', env), 'was not found on PATH')
  expect(await within('answer', runtime.resolveExecutable('tool.EXE', env))).toBe(tool)
})

test('item 17: the answer is absolute, and a link on PATH stays one', async () => {
  const { runtime, directory } = openCase()
  mkdirSync(join(directory, 'real'))
  program(join(directory, 'real', 'tool'))
  symlinkSync(join(directory, 'real'), join(directory, 'linked'))
  const PATH = join(directory, 'linked')
  expect(await within('answer', runtime.resolveExecutable('tool', { PATH }))).toBe(join(directory, 'linked', 'tool'))
})

test('item 17: what was found can be spawned as it is', async () => {
  const of = openCase()
  const sh = await within('answer', of.runtime.resolveExecutable('sh'))
  const handle = of.spawn([sh, '-c', 'exit 7'])
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 7, signal: null })
})
