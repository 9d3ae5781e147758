/**
 * Section E of the contract: the file with the whole of a tree's stream. A collector's own file is in collector-file.spec.ts.
 *
 * Two facts of the reference are not kept. Item 45's name of a file is that of a collector's own; a tree's file is named by the runtime,
 * in a directory with the same mode. Item 55's synchronous write holds for a collector alone: trees are drained and spilled while
 * JavaScript is busy (readers.spec.ts).
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { collecting, there, untilTotal } from './fixture/collected.js'
import { runHost } from './fixture/host.js'
import { node, printsBytes, shell } from './fixture/probe.js'
import { openCase, temporaryDirectory } from './fixture/runtime.js'
import { until, within } from './fixture/wait.js'

describe("the file of a tree's stream", () => {
  test('item 44, O12: the file has every byte of the stream, also those that are no text', async () => {
    const { directory, spawn } = openCase()
    const handle = spawn(
      node(
        `const bytes = require('node:crypto').randomBytes(300_000)
         require('node:fs').writeFileSync('expected', bytes); process.stdout.write(bytes)`,
      ),
      collecting({ maxBytes: 1_000, spill: { maxBytes: 1_000_000 } }),
    )
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    const reader = there(handle.collected.stdout)
    const expected = readFileSync(join(directory, 'expected'))
    const { spill } = reader
    expect(spill).toMatchObject({ state: 'available', bytes: 300_000 })
    expect(readFileSync((spill as { path: string }).path).equals(expected)).toBe(true)
    expect(reader.snapshot().tail.equals(expected.subarray(-1_000))).toBe(true)
  })

  test('item 44, 50: the file is made when the stream exceeds its window, and advertised while it grows', async () => {
    const { spawn } = openCase()
    const handle = spawn(
      shell('printf 12345678; read -r go; printf 9; read -r go'),
      collecting({ maxBytes: 8, spill: { maxBytes: 1_024 } }, 'pipe'),
    )
    const reader = there(handle.collected.stdout)
    await untilTotal(reader, 8)
    expect(reader.readFrom(0).spillPath).toBeUndefined()
    expect(reader.spill).toEqual({ state: 'none' })
    handle.stdin?.write('go\n')
    await until(() => reader.spill.state === 'available', 'spill file')
    const { spillPath } = reader.readFrom(8)
    await until(() => readFileSync(spillPath as string, 'utf8') === '123456789', 'whole stream in the file')
    handle.stdin?.end('go\n')
    await within('end', handle.done)
    expect(reader.readFrom(0)).toEqual({ text: '23456789', nextOffset: 9, lossy: true, spillPath })
  })

  test('item 45, O14: the file is private, in a private directory, and nothing is left in the working directory', async () => {
    const { directory, spawn } = openCase()
    const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000 } }))
    await within('end', handle.done)
    const { spillPath } = there(handle.collected.stdout).readFrom(0)
    expect(statSync(spillPath as string).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(spillPath as string)).mode & 0o777).toBe(0o700)
    expect(readdirSync(directory)).toEqual([])
  })

  test('item 45: internals.spillDir is where the files of later trees go', async () => {
    const { runtime, spawn } = openCase()
    const spillOf = async (): Promise<string> => {
      const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000 } }))
      await within('end', handle.done)
      return there(handle.collected.stdout).readFrom(0).spillPath as string
    }
    const [first, second] = [temporaryDirectory(), temporaryDirectory()]
    const elsewhere = await spillOf()
    for (const directory of [first, second]) {
      runtime.internals.spillDir = directory
      const path = await spillOf()
      expect(path.startsWith(`${directory}/`), path).toBe(true)
      expect(readFileSync(path, 'utf8')).toBe('x'.repeat(100))
    }
    runtime.internals.spillDir = undefined
    const back = await spillOf()
    expect(back.startsWith(first) || back.startsWith(second)).toBe(false)
    expect(existsSync(elsewhere)).toBe(true)
    await runtime.dispose()
    expect([...readdirSync(first), ...readdirSync(second)]).toEqual([])
    expect(existsSync(elsewhere) || existsSync(back)).toBe(false)
  })

  test('item 46, 47: a stream that is longer than its file may be has none', async () => {
    const spills = temporaryDirectory()
    const { runtime, spawn } = openCase()
    runtime.internals.spillDir = spills
    const handle = spawn(printsBytes(200_000), collecting({ maxBytes: 10, spill: { maxBytes: 100_000 } }))
    await within('end', handle.done)
    const reader = there(handle.collected.stdout)
    expect(reader.readFrom(0)).toEqual({ text: 'x'.repeat(10), nextOffset: 200_000, lossy: true })
    expect(reader.spill.state).toBe('withdrawn')
    expect(filesBelow(spills)).toEqual([])
  })

  test('item 49, 51, O14: the file stays when the stream has ended, and goes with the runtime', async () => {
    const { runtime, spawn } = openCase()
    const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000 } }))
    await within('end', handle.done)
    const { spillPath } = there(handle.collected.stdout).readFrom(0)
    await within('end of the tree', handle.waitForExit())
    expect(readFileSync(spillPath as string, 'utf8')).toHaveLength(100)
    await within('disposal', runtime.dispose())
    expect(existsSync(spillPath as string)).toBe(false)
    expect(existsSync(dirname(spillPath as string))).toBe(false)
  })

  test('item 51: a file that is kept outlives the runtime', async () => {
    const kept = join(temporaryDirectory(), 'kept')
    const { runtime, spawn } = openCase({ keptSpills: kept })
    const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000, life: 'keep' } }))
    await within('end', handle.done)
    const { spillPath } = there(handle.collected.stdout).readFrom(0)
    await within('disposal', runtime.dispose())
    expect((spillPath as string).startsWith(`${kept}/`), spillPath).toBe(true)
    expect(readFileSync(spillPath as string, 'utf8')).toHaveLength(100)
  })

  test('item 51: a file whose life is its handle\'s goes when nobody has the handle and its reader any more', async () => {
    const { spawn } = openCase()
    const path = await (async () => {
      const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000, life: 'handle' } }))
      await within('end', handle.done)
      await within('end of the tree', handle.waitForExit())
      const { spillPath } = there(handle.collected.stdout).readFrom(0)
      expect(readFileSync(spillPath as string, 'utf8')).toHaveLength(100)
      return spillPath as string
    })()
    const collect = globalThis.gc as () => void
    await within(
      'removal of the file',
      (async () => {
        // Finalizers run in turns of their own.
        for (; existsSync(path); collect()) await turn()
      })(),
    )
  })

  test('item 52: a full file system withdraws the file with the reason, and the output stays', async () => {
    const spills = temporaryDirectory()
    const end = await runHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime({ ownership: 'process_group' })
      runtime.internals.spillDir = process.argv[1]
      const handle = runtime.spawn({
        argv: ['sh', '-c', 'yes 2>/dev/null | head -c 1000000'], cwd: '/', graceMs: 1_000,
        stdio: { stdin: 'ignore', stdout: { maxBytes: 64, spill: { maxBytes: 1e9 } }, stderr: 'inherit' },
      })
      const outcome = await handle.done
      const { stdout } = handle.collected
      report({ outcome, read: stdout.readFrom(0), spill: stdout.spill })
      await runtime.dispose()
      `,
      {
        args: [spills],
        through: ['unshare', '--map-root-user', '--mount', 'sh', '-c', 'mount -t tmpfs -o size=256k spill "$0" && exec "$@"', spills],
      },
    )
    expect(end.exitCode, end.stderr).toBe(0)
    expect(end.reports).toEqual([
      {
        outcome: { exitCode: 0, signal: null },
        read: { text: 'y\n'.repeat(32), nextOffset: 1_000_000, lossy: true },
        spill: { state: 'withdrawn', reason: expect.stringMatching(/\S/) as string },
      },
    ])
  })

  test('item 52, 182: a directory that is gone or never was costs the file, not the tree', async () => {
    const { runtime, spawn } = openCase()
    runtime.internals.spillDir = join(temporaryDirectory(), 'missing')
    const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000 } }))
    expect(await within('end', handle.done)).toEqual({ exitCode: 0, signal: null })
    const reader = there(handle.collected.stdout)
    expect(reader.readFrom(0)).toEqual({ text: 'x'.repeat(10), nextOffset: 100, lossy: true })
    expect(reader.spill.state).toBe('withdrawn')
  })

  test('item 182: a spill directory that was removed is made again', async () => {
    const { runtime, spawn } = openCase()
    runtime.internals.spillDir = temporaryDirectory()
    const spillOf = async (): Promise<string> => {
      const handle = spawn(printsBytes(100), collecting({ maxBytes: 10, spill: { maxBytes: 1_000 } }))
      await within('end', handle.done)
      return there(handle.collected.stdout).readFrom(0).spillPath as string
    }
    rmSync(dirname(await spillOf()), { recursive: true })
    const again = await spillOf()
    expect(readFileSync(again, 'utf8')).toHaveLength(100)
    expect(statSync(dirname(again)).mode & 0o777).toBe(0o700)
  })

  test('item 182: an unusable temporary directory fails no spawn, and costs a spill alone', async () => {
    const end = await runHost(
      `
      import { LocalSubprocessRuntime } from 'dsh-subprocess'
      const runtime = new LocalSubprocessRuntime()
      const spawn = (stdout) => runtime.spawn({
        argv: ['sh', '-c', 'printf 0123456789'], cwd: '/', graceMs: 1_000, stdio: { stdin: 'ignore', stdout, stderr: 'inherit' },
      })
      for (const stdout of [{ maxBytes: 4 }, { maxBytes: 4, spill: { maxBytes: 100 } }]) {
        const handle = spawn(stdout)
        report([await handle.done, handle.collected.stdout.readFrom(0), handle.collected.stdout.spill.state])
      }
      await runtime.dispose()
      `,
      { env: { TMPDIR: '/nonexistent/directory' } },
    )
    expect(end.exitCode, end.stderr).toBe(0)
    const [outcome, read] = [{ exitCode: 0, signal: null }, { text: '6789', nextOffset: 10, lossy: true }]
    expect(end.reports).toEqual([
      [outcome, read, 'none'],
      [outcome, read, 'withdrawn'],
    ])
  })
})

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
