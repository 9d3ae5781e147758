/**
 * How the package is loaded, what its declarations say, and whether the examples in its documentation do what they say.
 *
 * The examples are those of docs/node.md, of the package's README and of the doc comments: every fenced block of `ts`. Each is complete by
 * itself, checked and compiled by tsc with `strict`, and run in a Node.js of its own. Where each of its calls of `console.log` has a
 * comment behind it, the comments are what it must print.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import defaultExport, * as namespace from 'dsh-subprocess'
import { runHost } from './fixture/host.js'
import { openCase } from './fixture/runtime.js'
import { within } from './fixture/wait.js'

const PACKAGE = join(__dirname, '..')
const REPOSITORY = join(PACKAGE, '..', '..')

/** What the package exports beside its types. */
const NAMES = [
  'DSH_ENV_PREFIX',
  'LocalSubprocessRuntime',
  'MAX_TIMER_DELAY_MS',
  'OutputCollector',
  'SENSITIVE_ENV_PATTERN',
  'SubprocessError',
  'childEnv',
  'killGroup',
  'localSubprocess',
  'scrubbedParentEnv',
  'spawnSubprocess',
  'taskkillProcessTree',
]

const run = promisify(execFile)

interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** Runs Node.js with the arguments to its end. */
async function runNode(args: readonly string[], cwd: string): Promise<Ended> {
  const env = { ...process.env, NODE_OPTIONS: undefined }
  try {
    return { code: 0, ...(await run(process.execPath, args, { cwd, env, timeout: 30_000 })) }
  } catch (error) {
    const { code, stdout, stderr } = error as Partial<Ended>
    return { code: code ?? -1, stdout: stdout ?? '', stderr: stderr ?? String(error) }
  }
}

/** A project that has installed the package. */
function makeProject(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-project-')))
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(PACKAGE, join(directory, 'node_modules', 'dsh-subprocess'))
  symlinkSync(join(PACKAGE, 'node_modules', '@types'), join(directory, 'node_modules', '@types'))
  return directory
}

/** Checks a project's files, or compiles them where there is a directory to put them. */
async function compile(directory: string, options: Record<string, unknown>): Promise<Ended> {
  const compilerOptions = { strict: true, target: 'es2022', lib: ['es2023'], noEmit: true, ...options }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*'] }))
  const typescript = dirname(createRequire(join(PACKAGE, 'package.json')).resolve('typescript/package.json'))
  return runNode([join(typescript, 'bin', 'tsc'), '--project', '.', '--pretty', 'false'], directory)
}

describe('loading', () => {
  test('import and require give the same objects, so there is one state', async () => {
    const end = await runHost(
      `
      import { createRequire } from 'node:module'
      import first, * as esm from 'dsh-subprocess'
      const require = createRequire(process.cwd() + '/')
      const cjs = require('dsh-subprocess')
      const names = (object) => Object.keys(object).filter((name) => name !== 'default' && name !== 'module.exports').sort()
      report(names(esm))
      report(names(cjs))
      report([...names(cjs)].filter((name) => esm[name] !== cjs[name]))
      report(first === cjs.LocalSubprocessRuntime && cjs.default === first && esm.default === first)
      report(require(process.cwd()) === cjs)
      const runtime = new esm.LocalSubprocessRuntime()
      report(runtime instanceof cjs.LocalSubprocessRuntime)
      await runtime.dispose()
      `,
    )
    expect(end).toMatchObject({ exitCode: 0, stderr: '' })
    expect(end.reports).toEqual([NAMES, NAMES, [], true, true, true])
  })

  test('the default export is the local runtime', () => {
    expect(defaultExport).toBe(namespace.LocalSubprocessRuntime)
  })

  test('loading starts nothing, listens to nothing and keeps nothing alive', async () => {
    const end = await runHost(
      `
      import { readdirSync, readFileSync } from 'node:fs'
      import { readFile } from 'node:fs/promises'
      // Node.js starts threads of its own for the first asynchronous work.
      await readFile('/proc/self/comm')
      const threads = readdirSync('/proc/self/task').length
      const events = () => process.eventNames().map((name) => [String(name), process.listenerCount(name)])
      const before = events()
      await import('dsh-subprocess')
      report(JSON.stringify(events()) === JSON.stringify(before))
      report(readdirSync('/proc/self/task').length - threads)
      report(readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8'))
      `,
    )
    expect(end).toMatchObject({ exitCode: 0, signal: null, reports: [true, 0, ''] })
  })

  test('item 106: a platform without an addon is named, together with what was tried', async () => {
    const end = await runHost(
      `
      Object.defineProperty(process, 'platform', { value: 'sunos' })
      Object.defineProperty(process, 'arch', { value: 'sparc' })
      try {
        const { LocalSubprocessRuntime } = await import('dsh-subprocess')
        await new LocalSubprocessRuntime().resolveExecutable('sh')
        report('loaded')
      } catch (error) {
        report(error.message)
      }
      `,
    )
    expect(end.reports[0]).toMatch(/sunos/)
    expect(end.reports[0]).toMatch(/sparc/)
  })

  test('taskkill is refused by name off Windows', () => {
    expect(() => namespace.taskkillProcessTree(process.pid)).toThrow(/taskkill.*(Windows|linux)/i)
  })

  test('one runtime that a thread shares runs what spawnSubprocess is given', async () => {
    const of = openCase()
    const handle = namespace.spawnSubprocess(of.spec(['printf', 'x']))
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    expect(handle.collected.stdout?.readFrom(0).text).toBe('x')
    expect(await handle.waitForExit()).toBe(true)
  })
})

/** Uses every part of the surface; what must not compile says so. */
const CONSUMER = `
const signal: AbortSignal = new AbortController().signal
const spec: api.SubprocessSpawnSpec = {
  argv: ['true'], cwd: '/', graceMs: 1, drainMs: 0, signal, env: { A: 'x', B: undefined }, control: true,
  stdio: { stdin: { data: new Uint8Array(1) }, stdout: { maxBytes: 1, headBytes: 1, spill: { maxBytes: 1, life: 'keep' } }, stderr: 'merge' },
}
export async function use(runtime: api.SubprocessRuntime, local: api.LocalSubprocessRuntime): Promise<void> {
  const handle: api.SubprocessHandle = runtime.spawn(spec)
  const outcome: { exitCode: number | null; signal: NodeJS.Signals | null } = await handle.done
  const read = handle.collected.stdout?.readFrom(0)
  if (read !== undefined) {
    const text: string = read.text
    const path: string | undefined = read.spillPath
    console.log(outcome, text, path, read.nextOffset + 1, read.lossy)
  }
  handle.stdin?.write('x')
  handle.stdout?.on('data', (chunk: Buffer) => chunk)
  handle.control?.end()
  handle.terminate()
  const gone: boolean = await handle.waitForExit(signal)
  const started: number = await handle.started
  local.spawn(spec).terminateForHostExit()
  const terminal = await local.spawnTerminal({ argv: ['sh'], cwd: '/', rows: 1, cols: 1, graceMs: 1, terminalType: 'dumb', recording: { path: '/x' } })
  terminal.terminateForHostExit()
  const waiting: boolean | undefined = (await terminal.inspectForeground())?.inputWaiting
  const group: number = await terminal.signalForeground('SIGTSTP')
  await terminal.resize(80, 24)
  const found: string = await runtime.resolveExecutable('sh', { PATH: '/bin' }, signal)
  const environment: NodeJS.ProcessEnv = api.childEnv({ ...api.scrubbedParentEnv(), X: undefined })
  const prefix: 'DSH_' = api.DSH_ENV_PREFIX
  const harness: api.DshEnvironment = { DSH_HOME: '/' }
  const collector = new api.OutputCollector(1, undefined, 'x', '/tmp')
  const output: api.CollectedOutput = collector.finalize()
  local.internals.spillDir = '/tmp'
  api.killGroup(2, 'SIGTERM')
  api.spawnSubprocess(spec, { spillDir: '/tmp' }).unref().ref()
  console.log(gone, started, waiting, group, found, environment, prefix, harness, output, api.SENSITIVE_ENV_PATTERN.test('x'))
  await local.dispose()
}
abstract class Base {
  constructor(readonly label: string) {}
  abstract describe(): string
}
export class Mine extends api.localSubprocess(Base) {
  describe(): string { return this.label + String(this.internals.spillDir) }
}
export const mine: api.SubprocessRuntime & Base = new Mine('x')
export const fallback: api.LocalSubprocessRuntime = new api.default({ ownership: 'reaper' })

// @ts-expect-error the grace has no default
export const graceless: api.SubprocessSpawnSpec = { argv: ['true'], cwd: '/', stdio: spec.stdio }
// @ts-expect-error standard input cannot be collected
export const stdin: api.SubprocessStdinMode = { maxBytes: 1 }
// @ts-expect-error only the error output merges
export const stdout: api.SubprocessOutputMode = 'merge'
// @ts-expect-error no such mechanism
export const ownership: api.LocalRuntimeOptions = { ownership: 'hope' }
// @ts-expect-error the foreground takes five signals
export const stop: api.SubprocessTerminalSignal = 'SIGSTOP'
// @ts-expect-error variables are text
export const numbers: api.SubprocessSpawnSpec = { ...spec, env: { A: 1 } }
// @ts-expect-error the base is abstract
export class Lacking extends api.localSubprocess(Base) {}
`

describe('declarations', () => {
  const settings: [string, string, Record<string, unknown>][] = [
    ['an ES module', 'consumer.mts', { module: 'node16', moduleResolution: 'node16' }],
    ['a CommonJS module', 'consumer.cts', { module: 'node16', moduleResolution: 'node16' }],
    ['a module for Node.js of today', 'consumer.mts', { module: 'nodenext', moduleResolution: 'nodenext' }],
    ['a module for a bundler', 'consumer.ts', { module: 'preserve', moduleResolution: 'bundler' }],
    ['a strict project', 'consumer.mts', { module: 'node16', exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }],
  ]
  test.each(settings)('the surface type-checks in %s', async (_, file, options) => {
    const directory = makeProject()
    try {
      const load = file.endsWith('.cts') ? "import api = require('dsh-subprocess')" : "import * as api from 'dsh-subprocess'"
      writeFileSync(join(directory, file), `${load}\n${CONSUMER}`)
      expect(await compile(directory, options)).toEqual({ code: 0, stdout: '', stderr: '' })
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})

/** An example: where it is, and what it says. */
interface Example {
  title: string
  text: string
}

/** The fenced blocks of a document. */
function examplesOf(path: string, document: string): Example[] {
  return [...document.matchAll(/^```ts\n(.*?)^```$/gms)].map((block, index) => ({
    title: `${relative(REPOSITORY, path)}, example ${index + 1}`,
    text: block[1] as string,
  }))
}

/** The text of the doc comments of a source, without what makes them comments. */
function docComments(source: string): string {
  return [...source.matchAll(/^[ \t]*\/\*\*\n(.*?)^[ \t]*\*\/$/gms)].map((comment) => (comment[1] as string).replace(/^[ \t]*\* ?/gm, '')).join('\n')
}

function allExamples(): Example[] {
  const documents = [join(REPOSITORY, 'docs', 'node.md'), join(PACKAGE, 'README.md')]
  const sources = readdirSync(join(PACKAGE, 'ts')).map((name) => join(PACKAGE, 'ts', name))
  return [
    ...documents.flatMap((path) => examplesOf(path, readFileSync(path, 'utf8'))),
    ...sources.flatMap((path) => examplesOf(path, docComments(readFileSync(path, 'utf8')))),
  ]
}

/** What an example must print by its comments; `undefined` where one of its calls has none. */
function expectedOutput(text: string): string | undefined {
  const calls = text.split('\n').filter((line) => line.includes('console.log('))
  const comments = calls.map((line) => /console\.log\(.*\) *\}?\)? *\/\/ (.*)$/.exec(line)?.[1])
  return calls.length > 0 && comments.every((comment) => comment !== undefined) ? comments.join(' ') : undefined
}

/** Line ends and runs of spaces are a matter of layout. */
const words = (text: string): string => text.split(/\s+/).filter((word) => word !== '').join(' ')

describe('examples', () => {
  const examples = allExamples()
  let directory = ''
  let compiled: Ended | undefined

  beforeAll(async () => {
    directory = makeProject()
    for (const [index, { text }] of examples.entries()) writeFileSync(join(directory, `example-${index}.mts`), text)
    compiled = await compile(directory, { module: 'node16', moduleResolution: 'node16', noEmit: false, outDir: 'out' })
  }, 120_000)

  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  test('every class and function has one, and so has every way to move here', () => {
    const all = examples.map(({ text }) => text).join('\n')
    for (const [name, value] of Object.entries(namespace)) {
      if (typeof value === 'function' && name !== 'default') expect(all.includes(name), name).toBe(true)
    }
    expect(examples.filter(({ title }) => title.startsWith('docs/node.md')).length).toBeGreaterThan(8)
  })

  test('all of them type-check', () => {
    expect(compiled).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test.each(examples.map(({ title, text }, index) => [title, text, index] as const))('%s', async (_, text, index) => {
    const end = await runNode([join(directory, 'out', `example-${index}.mjs`)], directory)
    expect(end).toMatchObject({ code: 0, stderr: '' })
    const expected = expectedOutput(text)
    if (expected !== undefined) expect(words(end.stdout)).toBe(words(expected))
  })
})
