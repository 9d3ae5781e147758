/**
 * Item 82 of the contract: the runtime as a service of a harness, on top of a class of the harness's own, and reached through proxies.
 * That a context takes one implementation alone is the harness's own rule; what happens when it refuses one is tested.
 */
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  localSubprocess,
  LocalSubprocessRuntime,
  OutputCollector,
  type LocalSubprocessHandle,
  type SubprocessRuntime,
  type SubprocessSpawnSpec,
} from 'dsh-subprocess'
import { exitsWith, prints, READY, shell, sleeps } from './fixture/probe.js'
import { openCase, temporaryDirectory } from './fixture/runtime.js'
import { readAll, rejection, thrown, untilCollected, within } from './fixture/wait.js'

/** What a cordis context does, as far as a service sees it: an effect runs at once, and what it returns runs when the scope ends. */
class Context {
  readonly effects: { readonly label: string | undefined; readonly dispose: () => Promise<void> }[] = []

  effect(callback: () => () => Promise<void>, label?: string): () => Promise<void> {
    const dispose = callback()
    this.effects.push({ label, dispose })
    return dispose
  }

  async end(): Promise<void> {
    for (const { dispose } of this.effects.reverse()) await dispose()
  }
}

/** A harness's own abstract class: it registers the service, and says what one has to have. */
abstract class Service implements SubprocessRuntime {
  static readonly inject = ['logger']
  readonly registered: string

  constructor(
    readonly ctx: Context,
    name: string,
  ) {
    this.registered = `${name}!`
  }

  abstract resolveExecutable: SubprocessRuntime['resolveExecutable']
  abstract spawn(spec: SubprocessSpawnSpec): LocalSubprocessHandle
  abstract spawnTerminal: SubprocessRuntime['spawnTerminal']

  describe(): string {
    return `${this.registered} ${typeof this.spawn}`
  }
}

describe('a context', () => {
  test('ends the runtime that was made with it', async () => {
    const { spec, processes } = openCase()
    const context = new Context()
    const runtime = new LocalSubprocessRuntime(context, { killBoundMs: 4_000 })
    expect(runtime.options).toMatchObject({ killBoundMs: 4_000 })
    expect(context.effects.map(({ label }) => label)).toEqual(['local subprocess teardown'])
    const handle = runtime.spawn(spec(sleeps()))
    await untilCollected(handle.collected.stdout, READY)
    await within('end of the context', context.end())
    expect(processes()).toEqual([])
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(thrown(() => runtime.spawn(spec(sleeps())))).toMatchObject({ kind: 'Disposed' })
  })

  test('is told of a disposal that failed', async () => {
    const context = new Context()
    class Failing extends LocalSubprocessRuntime {
      override async dispose(): Promise<void> {
        await super.dispose()
        throw new Error('of the subclass')
      }
    }
    const runtime = new Failing(context)
    expect(await rejection(context.end())).toMatchObject({ message: 'of the subclass' })
    expect(thrown(() => runtime.spawn({} as SubprocessSpawnSpec))).toBeInstanceOf(Error)
  })

  test('that takes no effect leaves no runtime behind', async () => {
    const listeners = process.listenerCount('exit')
    const ended = {
      effect(): never {
        throw new Error('the scope has ended')
      },
    }
    expect(thrown(() => new LocalSubprocessRuntime(ended))).toMatchObject({ message: 'the scope has ended' })
    await expect.poll(() => process.listenerCount('exit'), { timeout: 20_000 }).toBe(listeners)
  })
})

describe('a class of the harness\'s own', () => {
  test('stays the base: its constructor, its members and its static ones', async () => {
    const { spec } = openCase()
    class Local extends localSubprocess(Service, { ownership: 'process_group' }) {
      readonly extra = 'of the subclass'
    }
    const context = new Context()
    const service = new Local(context, 'subprocess')
    expect(service).toBeInstanceOf(Service)
    expect(service).toMatchObject({ ctx: context, registered: 'subprocess!', extra: 'of the subclass' })
    expect(service.describe()).toBe('subprocess! function')
    expect(Local.inject).toEqual(['logger'])
    expect(service.ownership().mechanism).toBe('process_group')
    expectTypeOf(service).toExtend<Service>()
    expectTypeOf(service.spawn(spec(exitsWith(0)))).toExtend<LocalSubprocessHandle>()
    expect(await within('end', service.spawn(spec(exitsWith(3))).done)).toEqual({ exitCode: 3, signal: null })
    expect(await within('look-up', service.resolveExecutable('/bin/sh'))).toBe('/bin/sh')
    await within('end of the context', context.end())
  })

  test('may be any class, and settings may follow from its arguments', async () => {
    const { spec } = openCase()
    class Named {
      constructor(
        readonly name: string,
        readonly boundMs: number,
      ) {}
    }
    const service = new (localSubprocess(Named, (_name, boundMs) => ({ killBoundMs: boundMs })))('plain', 1_234)
    expect(service).toMatchObject({ name: 'plain', boundMs: 1_234, options: { killBoundMs: 1_234 } })
    expect(await within('end', service.spawn(spec(exitsWith(2))).done)).toEqual({ exitCode: 2, signal: null })
    await within('disposal', service.dispose())
  })

  test('that refuses a second service leaves no runtime behind', () => {
    const listeners = process.listenerCount('exit')
    class Refusing {
      constructor() {
        throw new Error('service "subprocess" has been registered')
      }
    }
    expect(thrown(() => new (localSubprocess(Refusing))())).toMatchObject({ message: 'service "subprocess" has been registered' })
    expect(process.listenerCount('exit')).toBe(listeners)
  })

  test('a subclass can come before every spawn', async () => {
    const { spec } = openCase()
    const seen: string[] = []
    class Watched extends LocalSubprocessRuntime {
      override spawn(asked: SubprocessSpawnSpec): LocalSubprocessHandle {
        seen.push(asked.argv.join(' '))
        return super.spawn({ ...asked, env: { ...asked.env, ADDED: 'by the subclass' } })
      }
    }
    const runtime = new Watched()
    const handle = runtime.spawn(spec(shell('printf %s "$ADDED"')))
    await within('end', handle.done)
    expect(handle.collected.stdout?.readFrom(0).text).toBe('by the subclass')
    expect(seen).toHaveLength(1)
    await within('disposal', runtime.dispose())
  })
})

/** The ways in which harnesses hand out an object that is not quite the one that was made. */
const views: readonly [string, <T extends object>(object: T) => T][] = [
  ['a proxy', (object) => new Proxy(object, {})],
  [
    'a proxy that binds what it gives',
    (object) =>
      new Proxy(object, {
        get(target, key, receiver) {
          const value: unknown = Reflect.get(target, key, receiver)
          return typeof value === 'function' ? (value.bind(receiver) as unknown) : value
        },
      }),
  ],
  ['a proxy of a proxy', (object) => new Proxy(new Proxy(object, {}), {})],
  ['an object that inherits from it', (object) => Object.create(object) as typeof object],
]

describe.each(views)('through %s', (_, view) => {
  test('the whole surface of a runtime works', async () => {
    const { spec, terminalSpec, processes } = openCase()
    const runtime = view(new LocalSubprocessRuntime({ ownership: 'process_group' }))
    expect(runtime.options).toEqual({ ownership: 'process_group' })
    expect(runtime.ownership().mechanism).toBe('process_group')
    expect(await within('look-up', runtime.resolveExecutable('sh'))).toMatch(/^\/.*\/sh$/)
    expect((await within('environment', runtime.terminalEnvironment())).platform).toBe(process.platform)
    const spills = temporaryDirectory()
    runtime.internals.spillDir = spills
    const spilled = runtime.spawn(spec(prints('0123456789'), { stdio: { stdin: 'ignore', stdout: { maxBytes: 4, spill: { maxBytes: 100 } }, stderr: 'inherit' } }))
    expect(await within('end', spilled.done)).toEqual({ exitCode: 0, signal: null })
    expect(spilled.collected.stdout?.readFrom(0).spillPath?.startsWith(`${spills}/`)).toBe(true)
    const terminal = await within('terminal', runtime.spawnTerminal(terminalSpec(prints('text'))))
    expect((await readAll(terminal.output)).toString()).toBe('text')
    const live = runtime.spawn(spec(sleeps()))
    await untilCollected(live.collected.stdout, READY)
    const disposal = runtime.dispose()
    expect(runtime[Symbol.asyncDispose]()).toBe(disposal)
    await within('disposal', disposal)
    expect(processes()).toEqual([])
  })

  test('a handle, a terminal and a collector work', async () => {
    const { spawn, spawnTerminal, processes } = openCase()
    const handle = view(
      spawn(shell('cat; echo ready; exec sleep 300'), { stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64 } } }),
    )
    expect(await within('start', handle.started)).toBe(handle.pid)
    const { stdout } = handle
    handle.stdin?.end('typed\n')
    let text = ''
    for await (const chunk of stdout?.iterator({ destroyOnReturn: false }) ?? []) if ((text += String(chunk)).endsWith(READY)) break
    expect(text).toBe(`typed\n${READY}`)
    stdout?.resume()
    expect(handle.collected.stderr?.readFrom(0).text).toBe('')
    expect((await within('members', handle.members()))[0]?.pid).toBe(handle.pid)
    expect(handle.unref().ref()).toBeDefined()
    handle.terminate()
    expect(await within('end', handle.done)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(await within('exit', handle.exited)).toEqual({ exitCode: null, signal: 'SIGTERM' })
    expect(await within('end of the tree', handle.waitForExit())).toBe(true)

    const terminal = view(await spawnTerminal(['cat'], { graceMs: 500 }))
    await within('write', terminal.write('typed\n'))
    await within('resize', terminal.resize(100, 30))
    expect((await within('foreground', terminal.inspectForeground()))?.processGroupId).toBe(terminal.pid)
    terminal.output.resume()
    await within('end', terminal.terminate())
    expect(processes()).toEqual([])

    const collector = view(new OutputCollector(4, 100, 'stdout', temporaryDirectory()))
    collector.push(Buffer.from('abcdef'))
    expect(collector.finalize()).toMatchObject({ text: 'cdef', truncated: true, spillPath: expect.any(String) as string })
  })
})

test('internals can be replaced as a whole', async () => {
  const { runtime, spec } = openCase()
  const spills = temporaryDirectory()
  runtime.internals = { spillDir: spills }
  const handle = runtime.spawn(spec(prints('0123456789'), { stdio: { stdin: 'ignore', stdout: { maxBytes: 4, spill: { maxBytes: 100 } }, stderr: 'inherit' } }))
  await within('end', handle.done)
  expect(handle.collected.stdout?.readFrom(0).spillPath?.startsWith(`${spills}/`)).toBe(true)
})

test('a method without its runtime says so', () => {
  const { spawn } = LocalSubprocessRuntime.prototype
  expect(thrown(() => spawn.call({} as LocalSubprocessRuntime, {} as SubprocessSpawnSpec))).toBeInstanceOf(TypeError)
})
