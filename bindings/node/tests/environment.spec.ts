/**
 * Section A of the contract: what a child's environment is made of.
 *
 * Not applicable here, and what stands in their place:
 * - Item 5, Windows: names are matched without regard to case there. This package runs where they are matched exactly, and that is tested.
 * - Item 9, the shell tool's layer of `DSH_*` variables: it is a consumer's. What it builds on is tested: an explicit `DSH_*` variable
 *   merges last, and an ambient one never gets through.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  childEnv,
  DSH_ENV_PREFIX,
  LocalSubprocessRuntime,
  scrubbedParentEnv,
  SENSITIVE_ENV_PATTERN,
} from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { parseEnvironment, printsEnvironment, READY, shell, sleeps } from './fixture/probe.js'
import { type Case, environmentOf, openCase, tiers } from './fixture/runtime.js'
import { thrown, untilCollected, untilRead, within } from './fixture/wait.js'

/** Changes this process's environment for one test; `undefined` removes a variable. */
function setAmbient(variables: NodeJS.ProcessEnv): void {
  const before = { ...process.env }
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  for (const [name, value] of Object.entries(variables)) set(name, value)
  onTestFinished(() => {
    for (const name of Object.keys(variables)) set(name, before[name])
  })
}

/** Runs a child that prints its environment. */
async function environmentOfChild(of: Case, env?: NodeJS.ProcessEnv): Promise<Map<string, string>> {
  const handle = of.spawn(printsEnvironment(), env === undefined ? {} : { env })
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  const read = handle.collected.stdout?.readFrom(0)
  expect(read?.lossy).toBe(false)
  return parseEnvironment(read?.text ?? '')
}

/** Names that are credentials by the contract's four words, or the harness's own. */
const UNWANTED = [
  'OPENAI_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'AWS_SECRET_ACCESS_KEY',
  'GITHUB_TOKEN',
  'MYSQL_PASSWORD',
  'TOKEN_FILE',
  'apikey',
  'MonkeyBusiness',
  'my_password_2',
  'XSECRETX',
  'DSH_HOME',
  'dsh_shell',
  'Dsh_Session_Id',
]

describe.each(tiers)('on %s', (ownership) => {
  test('item 1: credentials and DSH_ names of the host reach no child, whatever their case', async () => {
    setAmbient(Object.fromEntries(UNWANTED.map((name) => [name, `value of ${name}`])))
    const child = await environmentOfChild(openCase({ ownership }))
    expect(UNWANTED.filter((name) => child.has(name))).toEqual([])
    expect([...child.values()].filter((value) => value.startsWith('value of '))).toEqual([])
  })

  test('item 3: an explicit credential and an explicit DSH_ name reach the child, and that child alone', async () => {
    setAmbient({ X_TOKEN: 'ambient', DSH_FACT: 'ambient' })
    const of = openCase({ ownership })
    const child = await environmentOfChild(of, { X_TOKEN: 'explicit', DSH_FACT: 'fresh' })
    expect(child.get('X_TOKEN')).toBe('explicit')
    expect(child.get('DSH_FACT')).toBe('fresh')
    const next = await environmentOfChild(of)
    expect(next.has('X_TOKEN')).toBe(false)
    expect(next.has('DSH_FACT')).toBe(false)
  })

  test('item 4: an explicit undefined removes an ambient variable, and does nothing where there is none', async () => {
    setAmbient({ TO_BE_REMOVED: 'ambient', TO_STAY: 'ambient', ABSENT: undefined })
    const child = await environmentOfChild(openCase({ ownership }), { TO_BE_REMOVED: undefined, ABSENT: undefined })
    expect(child.has('TO_BE_REMOVED')).toBe(false)
    expect(child.has('ABSENT')).toBe(false)
    expect(child.get('TO_STAY')).toBe('ambient')
  })

  test('O25: no secret is in the environment or the arguments of a child, nor of a terminal, that lives', async () => {
    setAmbient(Object.fromEntries(UNWANTED.map((name) => [name, `secret of ${name}`])))
    const of = openCase({ ownership })
    const handle = of.spawn(sleeps())
    await untilCollected(handle.collected.stdout, READY)
    const terminal = await of.spawnTerminal(sleeps())
    await untilRead(terminal.output, 'ready')
    for (const pid of [handle.pid, terminal.pid]) {
      const environment = environmentOf(pid)
      expect(environment).toContain(`DSH_CASE=${of.marker}`)
      expect(environment.filter((entry) => entry.includes('secret of '))).toEqual([])
      expect(environment.map((entry) => entry.split('=')[0]).filter((name) => UNWANTED.includes(name ?? ''))).toEqual([])
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain('secret of ')
    }
  })
})

test('item 1: the pattern and the prefix are what is said of them', () => {
  expect(SENSITIVE_ENV_PATTERN.source).toBe('KEY|PASSWORD|SECRET|TOKEN')
  expect(SENSITIVE_ENV_PATTERN.flags).toBe('i')
  expect(UNWANTED.filter((name) => SENSITIVE_ENV_PATTERN.test(name)).length).toBe(10)
  expect(DSH_ENV_PREFIX).toBe('DSH_')
})

test('item 1: the environment is read at each spawn', async () => {
  const of = openCase()
  setAmbient({ CHANGES: 'first' })
  expect((await environmentOfChild(of)).get('CHANGES')).toBe('first')
  process.env['CHANGES'] = 'second'
  expect((await environmentOfChild(of)).get('CHANGES')).toBe('second')
  delete process.env['CHANGES']
  expect((await environmentOfChild(of)).has('CHANGES')).toBe(false)
})

test("item 1: in a worker thread the host's environment is the thread's own", async () => {
  const host = await runHost(`
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    process.env.OF_THE_PROCESS = 'yes'
    const worker = new Worker(\`
      const { parentPort } = require('node:worker_threads')
      const { LocalSubprocessRuntime, scrubbedParentEnv } = require('dsh-subprocess')
      const runtime = new LocalSubprocessRuntime()
      const collect = { maxBytes: 1048576 }
      const handle = runtime.spawn({
        argv: ['env'], cwd: '/', graceMs: 1000, stdio: { stdin: 'ignore', stdout: collect, stderr: collect },
      })
      handle.done.then(async () => {
        const names = handle.collected.stdout.readFrom(0).text.split('\\\\n').map((line) => line.split('=')[0])
        await runtime.dispose()
        parentPort.postMessage({ names, scrubbed: Object.keys(scrubbedParentEnv()) })
      })
    \`, { eval: true, execArgv: [], env: { PATH: process.env.PATH, OF_THE_WORKER: 'yes', WORKER_TOKEN: 'secret' } })
    const [message] = await once(worker, 'message')
    report(message)
  `)
  expect(host).toMatchObject({ exitCode: 0, stderr: '' })
  const { names, scrubbed } = host.reports[0] as { names: string[]; scrubbed: string[] }
  for (const found of [names, scrubbed]) {
    expect(found).toContain('OF_THE_WORKER')
    expect(found).not.toContain('WORKER_TOKEN')
    expect(found).not.toContain('OF_THE_PROCESS')
  }
})

test('item 2: what programs need survives unchanged', async () => {
  const needed = {
    HOME: '/home/of/the/test',
    USER: 'ada',
    LOGNAME: 'ada',
    LANG: 'C.UTF-8',
    LC_ALL: 'C',
    LC_TIME: 'de_DE.UTF-8',
    TMPDIR: process.env['TMPDIR'] ?? '/tmp',
    SSH_AUTH_SOCK: '/run/agent.sock',
    http_proxy: 'http://proxy.example:3128',
    HTTPS_PROXY: 'http://proxy.example:3128',
    NO_PROXY: 'localhost,127.0.0.1',
    EDITOR: 'vi',
  }
  setAmbient(needed)
  const child = await environmentOfChild(openCase())
  expect(Object.fromEntries(Object.keys(needed).map((name) => [name, child.get(name)]))).toEqual(needed)
  expect(child.get('PATH')).toBe(process.env['PATH'])
})

test('item 2: differently named secrets are dropped, too, and names that match by accident stay', async () => {
  setAmbient({
    BACKUP_PASSPHRASE: 'hunter-2',
    SMTP_PASS: 'hunter-2',
    APP_CREDENTIALS: 'hunter-2',
    DATABASE_URL: 'postgres://ada:hunter-2@db.example/app',
    TOKENIZERS_PARALLELISM: 'false',
  })
  const child = await environmentOfChild(openCase())
  expect([...child].filter(([, value]) => value.includes('hunter-2'))).toEqual([])
  expect(child.get('TOKENIZERS_PARALLELISM')).toBe('false')
})

test('item 3: an explicit string wins over the same ambient name', async () => {
  setAmbient({ PLAIN: 'ambient' })
  const child = await environmentOfChild(openCase(), { PLAIN: 'explicit', EMPTY: '' })
  expect(child.get('PLAIN')).toBe('explicit')
  expect(child.get('EMPTY')).toBe('')
})

test('item 5: names are matched exactly, so two spellings are two variables', async () => {
  setAmbient({ CaseProbe: 'ambient', KEPT: 'ambient' })
  const child = await environmentOfChild(openCase(), { CASEPROBE: 'explicit', Path: '/explicit', kept: undefined })
  expect(child.get('CaseProbe')).toBe('ambient')
  expect(child.get('CASEPROBE')).toBe('explicit')
  expect(child.get('Path')).toBe('/explicit')
  expect(child.get('PATH')).toBe(process.env['PATH'])
  expect(child.get('KEPT')).toBe('ambient')
})

test.each(['xterm-of-the-host', undefined])('item 6: an ordinary spawn leaves TERM as it is: %s', async (TERM) => {
  setAmbient({ TERM })
  const of = openCase()
  expect((await environmentOfChild(of)).get('TERM')).toBe(TERM)
  expect((await environmentOfChild(of, { TERM: 'explicit' })).get('TERM')).toBe('explicit')
})

test.each([
  ['an empty name', { '': 'hunter-2' }, 'empty'],
  ['a name with =', { 'A=B': 'hunter-2' }, 'A=B'],
  ['a NUL in a name', { 'OFFENDER\0': 'hunter-2' }, 'OFFENDER'],
  ['a NUL in a value', { OFFENDER: 'hunter-2\0' }, 'OFFENDER'],
  ['a removal of a name with =', { 'A=B': undefined }, 'A=B'],
])('item 7: %s is refused at once by name, and no value is told', (_, env, named) => {
  const of = openCase()
  const reason = thrown(() => of.spawn(sleeps(), { env }))
  expect(reason).toBeInstanceOf(Error)
  expect(reason).toMatchObject({ kind: 'InvalidSpec', message: expect.stringContaining(named) as string })
  expect((reason as Error).message).not.toContain('hunter')
  expect(of.processes()).toEqual([])
})

test.each([
  ['a number', 424_242],
  ['a boolean', true],
  ['null', null],
  ['an object', { toString: () => '424242' }],
])('item 7: %s is no value of a variable', (_, value) => {
  const of = openCase()
  const env = { OFFENDER: value } as unknown as NodeJS.ProcessEnv
  const reason = thrown(() => of.spawn(sleeps(), { env }))
  expect(reason).toBeInstanceOf(TypeError)
  expect((reason as Error).message).toContain('OFFENDER')
  expect((reason as Error).message).not.toContain('424242')
  expect(of.processes()).toEqual([])
})

test('item 8: the scrub is a function for spawners outside, and what a runtime gives its children', async () => {
  setAmbient({ A_TOKEN: 'secret', DSH_STALE: 'stale', PLAIN: 'line one\nline two', PWD: undefined })
  const scrubbed = scrubbedParentEnv()
  expect(Object.keys(scrubbed)).not.toContain('A_TOKEN')
  expect(Object.keys(scrubbed)).not.toContain('DSH_STALE')
  expect(scrubbed['PLAIN']).toBe('line one\nline two')
  const outside = spawnSync('env', ['-0'], { env: scrubbed, encoding: 'utf8' })
  const of = openCase()
  const inside = await environmentOfChild(of)
  // What the runtime adds: the directory that the child is in, and what the test itself asked for.
  expect(inside.get('PWD')).toBe(of.directory)
  inside.delete('PWD')
  inside.delete('DSH_CASE')
  expect(Object.fromEntries(inside)).toEqual(Object.fromEntries(parseEnvironment(outside.stdout)))
})

test('item 8: the scrub is computed anew by each call, and its result belongs to the caller', () => {
  setAmbient({ PLAIN: 'first' })
  const first = scrubbedParentEnv()
  first['PLAIN'] = 'changed by its owner'
  expect(scrubbedParentEnv()['PLAIN']).toBe('first')
  expect(process.env['PLAIN']).toBe('first')
  process.env['PLAIN'] = 'second'
  expect(scrubbedParentEnv()['PLAIN']).toBe('second')
})

test('item 8: childEnv is the scrub with the entries of one child on top', () => {
  setAmbient({ A_TOKEN: 'ambient', B_TOKEN: 'ambient', PLAIN: 'ambient', REMOVED: 'ambient' })
  const child = childEnv({ A_TOKEN: 'explicit', DSH_FACT: 'fresh', REMOVED: undefined, ABSENT: undefined })
  const { REMOVED, ...rest } = scrubbedParentEnv()
  expect(REMOVED).toBe('ambient')
  expect(child).toEqual({ ...rest, A_TOKEN: 'explicit', DSH_FACT: 'fresh' })
  expect(Object.keys(child)).not.toContain('REMOVED')
  expect(Object.keys(child)).not.toContain('ABSENT')
})

test('item 9: a fresh set of DSH_ variables merges over the stale one of the host', async () => {
  setAmbient({ DSH_SHELL: 'stale', DSH_SESSION_ID: 'stale' })
  const child = await environmentOfChild(openCase(), { DSH_SHELL: '1', DSH_HOME: '/home/of/the/harness' })
  expect(child.get('DSH_SHELL')).toBe('1')
  expect(child.get('DSH_HOME')).toBe('/home/of/the/harness')
  expect(child.has('DSH_SESSION_ID')).toBe(false)
})

test('O25: an explicit PATH is the one that programs are found on, and the one that the child has', async () => {
  const of = openCase()
  const tool = join(of.directory, 'only-here')
  writeFileSync(tool, '#!/bin/sh\nprintf %s "$PATH"\n')
  chmodSync(tool, 0o755)
  const handle = of.spawn(['only-here'], { env: { PATH: of.directory } })
  expect(await within('outcome', handle.done)).toEqual({ exitCode: 0, signal: null })
  expect(handle.collected.stdout?.readFrom(0).text).toBe(of.directory)
})

test('O25: two runtimes of one process keep the explicit variables of their children apart', async () => {
  const [one, other] = [openCase(), openCase()]
  expect(one.runtime).toBeInstanceOf(LocalSubprocessRuntime)
  const script = shell('printf %s "$SERVICE_TOKEN"')
  const handles = [one.spawn(script, { env: { SERVICE_TOKEN: 'of one' } }), other.spawn(script)]
  await within('outcomes', Promise.all(handles.map((handle) => handle.done)))
  expect(handles.map((handle) => handle.collected.stdout?.readFrom(0).text)).toEqual(['of one', ''])
})
