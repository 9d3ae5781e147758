/**
 * Section E of the contract: the file of an {@link OutputCollector}. The files of trees are in spill.spec.ts.
 *
 * The faults that no directory has for root, too, are made where the collector meets the file system: in `node:fs`.
 */
import fs, { readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { OutputCollector } from 'dsh-subprocess'
import { pattern } from './fixture/bytes.js'
import { openDescriptors, temporaryDirectory, untilNoDescriptorLeaks } from './fixture/runtime.js'

/** Passes a function of the file system's, until the test has finished, through another one. */
function intercept<Name extends 'openSync' | 'writeSync' | 'closeSync'>(
  name: Name,
  replacement: (real: (typeof fs)[Name], ...args: unknown[]) => unknown,
): void {
  const real = fs[name]
  const spy = vi.spyOn(fs, name)
  spy.mockImplementation(((...args: unknown[]) => replacement(real, ...args)) as never)
  onTestFinished(() => spy.mockRestore())
}

/** Whether a descriptor of this process is a file below a directory. */
function isBelow(directory: string, descriptor: unknown): boolean {
  return openDescriptors().some((entry) => entry.startsWith(`${String(descriptor)} -> ${directory}/`))
}

function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected`), { code })
}

describe('the file of a collector', () => {
  test('item 44: the file is made at the first overflow, and has the whole stream', () => {
    const directory = temporaryDirectory()
    const stream = pattern(5_000)
    const collector = new OutputCollector(1_000, 10_000, 'stdout', directory)
    for (let at = 0; at < stream.length; at += 250) {
      collector.push(stream.subarray(at, at + 250))
      expect(readdirSync(directory)).toHaveLength(at + 250 > 1_000 ? 1 : 0)
    }
    const { spillPath, truncated } = collector.finalize()
    expect(truncated).toBe(true)
    expect(readFileSync(spillPath as string).equals(stream)).toBe(true)
  })

  test('item 44: without a spill there is no file', () => {
    const directory = temporaryDirectory()
    const collector = new OutputCollector(4, undefined, 'stdout', directory)
    collector.push(Buffer.from('abcdefgh'))
    expect(collector.finalize()).toEqual({ text: 'efgh', truncated: true })
    expect(readdirSync(directory)).toEqual([])
  })

  test('item 45: the name of a file tells the process, a number, a random word and the label; it is its owner\'s alone', () => {
    const directory = temporaryDirectory()
    const paths = ['stdout', 'stderr'].map((label) => {
      const collector = new OutputCollector(0, 1_024, label, directory)
      collector.push(Buffer.from('x'))
      const { spillPath } = collector.finalize()
      expect(basename(spillPath as string)).toMatch(
        new RegExp(`^dsh-subprocess-${process.pid}-\\d+-[0-9a-f]{12}-${label}\\.log$`),
      )
      expect(dirname(spillPath as string)).toBe(directory)
      expect(statSync(spillPath as string).mode & 0o777).toBe(0o600)
      return spillPath
    })
    expect(new Set(paths).size).toBe(2)
  })

  test('item 45: where no directory is given it is one of the process, private, below the temporary one, and made again when it is removed', () => {
    const spill = (): string => {
      const collector = new OutputCollector(0, 1_024, 'stdout')
      collector.push(Buffer.from('x'))
      return collector.finalize().spillPath as string
    }
    const directory = dirname(spill())
    expect(dirname(spill())).toBe(directory)
    expect(dirname(directory)).toBe(tmpdir())
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    rmSync(directory, { recursive: true })
    const again = spill()
    onTestFinished(() => rmSync(dirname(again), { recursive: true, force: true }))
    expect(readFileSync(again, 'utf8')).toBe('x')
    expect(statSync(dirname(again)).mode & 0o777).toBe(0o700)
  })

  test('item 45: a path that somebody else has is neither written nor removed', () => {
    const directory = temporaryDirectory()
    let taken: string | undefined
    intercept('openSync', (real, path, ...rest) => {
      if (taken === undefined && String(path).startsWith(`${directory}/`)) {
        taken = String(path)
        fs.writeFileSync(taken, 'somebody else')
      }
      return (real as (...args: unknown[]) => number)(path, ...rest)
    })
    const collector = new OutputCollector(0, 4, 'stdout', directory)
    collector.push(Buffer.from('ab'))
    collector.push(Buffer.from('cdefgh'))
    expect(collector.finalize().spillPath).toBeUndefined()
    expect(readFileSync(taken as unknown as string, 'utf8')).toBe('somebody else')
  })

  test('item 46: a stream that is longer than its file may be has none, from then on', async () => {
    const directory = temporaryDirectory()
    const before = openDescriptors()
    const collector = new OutputCollector(4, 16, 'stdout', directory)
    collector.push(Buffer.from('0123456789'))
    expect(readdirSync(directory)).toHaveLength(1)
    collector.push(Buffer.from('abcdefg'))
    expect(readdirSync(directory)).toEqual([])
    for (let more = 0; more < 10; more++) collector.push(Buffer.from('hijk'))
    expect(collector.readFrom(0).spillPath).toBeUndefined()
    expect(collector.finalize()).toEqual({ text: 'hijk', truncated: true })
    expect(readdirSync(directory)).toEqual([])
    await untilNoDescriptorLeaks(before, 0)
  })

  test('item 46: a stream of exactly the largest size keeps its file', () => {
    const collector = new OutputCollector(4, 16, 'stdout', temporaryDirectory())
    collector.push(Buffer.from('0123456789'))
    collector.push(Buffer.from('abcdef'))
    expect(readFileSync(collector.finalize().spillPath as string, 'utf8')).toBe('0123456789abcdef')
  })

  test('item 47: a first overflow beyond the largest file makes none', () => {
    const directory = temporaryDirectory()
    const opened: unknown[] = []
    intercept('openSync', (real, path, ...rest) => {
      if (String(path).startsWith(directory)) opened.push(path)
      return (real as (...args: unknown[]) => number)(path, ...rest)
    })
    const collector = new OutputCollector(4, 16, 'stdout', directory)
    collector.push(Buffer.alloc(17, 'x'))
    collector.push(Buffer.from('abcd'))
    expect(collector.finalize()).toEqual({ text: 'abcd', truncated: true })
    expect(opened).toEqual([])
    expect(readdirSync(directory)).toEqual([])
  })

  test('item 48: a file that cannot be closed is given up, and the end of the stream tries again', async () => {
    const directory = temporaryDirectory()
    const before = openDescriptors()
    let failures = 0
    intercept('closeSync', (real, descriptor) => {
      if (failures === 0 && isBelow(directory, descriptor)) {
        failures++
        throw systemError('EIO')
      }
      return (real as (descriptor: unknown) => void)(descriptor)
    })
    const collector = new OutputCollector(4, 16, 'stdout', directory)
    collector.push(Buffer.from('0123456789'))
    collector.push(Buffer.from('abcdefghij'))
    expect(failures).toBe(1)
    expect(collector.readFrom(0).spillPath).toBeUndefined()
    collector.seal()
    expect(collector.finalize()).toEqual({ text: 'ghij', truncated: true })
    await untilNoDescriptorLeaks(before, 0)
  })

  test('item 48: a file that cannot be removed is given up', () => {
    const directory = temporaryDirectory()
    const collector = new OutputCollector(4, 16, 'stdout', directory)
    collector.push(Buffer.from('0123456789'))
    const path = join(directory, readdirSync(directory)[0] as string)
    renameSync(path, `${path}.moved`)
    fs.mkdirSync(path)
    collector.push(Buffer.from('abcdefghij'))
    expect(collector.finalize()).toEqual({ text: 'ghij', truncated: true })
    expect(statSync(path).isDirectory()).toBe(true)
  })

  test('item 49: the end closes the file, once', async () => {
    const directory = temporaryDirectory()
    const before = openDescriptors()
    const collector = new OutputCollector(4, 1_024, 'stdout', directory)
    collector.push(Buffer.from('0123456789'))
    expect(openDescriptors().filter((entry) => entry.includes(directory))).toHaveLength(1)
    collector.seal()
    expect(openDescriptors().filter((entry) => entry.includes(directory))).toEqual([])
    collector.seal()
    expect(collector.finalize()).toEqual(collector.finalize())
    expect(readFileSync(collector.finalize().spillPath as string, 'utf8')).toBe('0123456789')
    await untilNoDescriptorLeaks(before, 0)
  })

  test('item 49: a file that cannot be closed at the end is withdrawn, and the text stays', () => {
    const directory = temporaryDirectory()
    intercept('closeSync', (real, descriptor) => {
      const fails = isBelow(directory, descriptor)
      ;(real as (descriptor: unknown) => void)(descriptor)
      if (fails) throw systemError('EIO')
    })
    const collector = new OutputCollector(4, 1_024, 'stdout', directory)
    collector.push(Buffer.from('0123456789'))
    collector.seal()
    expect(collector.readFrom(0)).toEqual({ text: '6789', nextOffset: 10, lossy: true })
    expect(collector.finalize()).toEqual({ text: '6789', truncated: true })
  })

  test('item 50: an intact file is advertised as soon as it is there', () => {
    const directory = temporaryDirectory()
    const collector = new OutputCollector(4, 1_024, 'stdout', directory)
    collector.push(Buffer.from('abcd'))
    expect(collector.readFrom(0).spillPath).toBeUndefined()
    collector.push(Buffer.from('e'))
    const path = join(directory, readdirSync(directory)[0] as string)
    expect(collector.readFrom(0).spillPath).toBe(path)
    expect(readFileSync(path, 'utf8')).toBe('abcde')
  })

  test('item 51: the file outlives the end of the stream', () => {
    const collector = new OutputCollector(0, 1_024, 'stdout', temporaryDirectory())
    collector.push(Buffer.from('kept'))
    const { spillPath } = collector.finalize()
    collector.seal()
    expect(readFileSync(spillPath as string, 'utf8')).toBe('kept')
  })

  test.each([
    ['a file', []],
    ['a path below a file', ['below', 'it']],
  ])('item 52: %s in the place of the directory costs the file alone', (_, below) => {
    const file = join(temporaryDirectory(), 'file')
    fs.writeFileSync(file, '')
    const collector = new OutputCollector(4, 1_024, 'stdout', join(file, ...below))
    collector.push(Buffer.from('abcdefgh'))
    collector.push(Buffer.from('ijkl'))
    expect(collector.finalize()).toEqual({ text: 'ijkl', truncated: true })
  })

  test('item 182: a directory that was removed is made again', () => {
    const directory = join(temporaryDirectory(), 'removed', 'meanwhile')
    const collector = new OutputCollector(4, 1_024, 'stdout', directory)
    collector.push(Buffer.from('abcdefgh'))
    expect(readFileSync(collector.finalize().spillPath as string, 'utf8')).toBe('abcdefgh')
    expect(statSync(directory).mode & 0o777).toBe(0o700)
  })

  test.each(['ENOSPC', 'EMFILE', 'EIO'])('item 52: %s while the file is written ends it, and not the collecting', async (code) => {
    const directory = temporaryDirectory()
    const before = openDescriptors()
    let full = false
    intercept('writeSync', (real, descriptor, ...rest) => {
      if (full && isBelow(directory, descriptor)) throw systemError(code)
      return (real as (...args: unknown[]) => number)(descriptor, ...rest)
    })
    const collector = new OutputCollector(4, 1_024, 'stdout', directory)
    collector.push(Buffer.from('abcdefgh'))
    expect(collector.readFrom(0).spillPath).toBeDefined()
    full = true
    collector.push(Buffer.from('ijkl'))
    full = false
    expect(collector.readFrom(0).spillPath).toBeUndefined()
    collector.push(Buffer.from('mnop'))
    expect(collector.finalize()).toEqual({ text: 'mnop', truncated: true })
    expect(readdirSync(directory)).toEqual([])
    await untilNoDescriptorLeaks(before, 0)
  })

  test('item 182: a failure is reported once, and a reporter that throws is contained', () => {
    const directory = temporaryDirectory()
    intercept('writeSync', (real, descriptor, ...rest) => {
      if (isBelow(directory, descriptor)) throw systemError('ENOSPC')
      return (real as (...args: unknown[]) => number)(descriptor, ...rest)
    })
    const reports: unknown[] = []
    const collector = new OutputCollector(4, 1_024, 'stdout', directory, (reason) => {
      reports.push(reason)
      throw new Error('of the reporter')
    })
    collector.push(Buffer.from('abcdefgh'))
    collector.push(Buffer.from('ijkl'))
    collector.seal()
    expect(collector.finalize()).toEqual({ text: 'ijkl', truncated: true })
    expect(reports).toHaveLength(1)
    expect(String(reports[0])).toContain('ENOSPC')
  })

  test('item 53: a write that takes a part of the bytes is gone on with', () => {
    const directory = temporaryDirectory()
    let writes = 0
    intercept('writeSync', (real, descriptor, ...rest) => {
      if (!isBelow(directory, descriptor)) return (real as (...args: unknown[]) => number)(descriptor, ...rest)
      writes++
      const [bytes, offset = 0, length = (bytes as Uint8Array).length - (offset as number), position] = rest
      return real(descriptor as number, bytes as Uint8Array, offset as number, Math.min(7, length as number), position as number)
    })
    const stream = pattern(300)
    const collector = new OutputCollector(100, 1_024, 'stdout', directory)
    for (let at = 0; at < stream.length; at += 60) collector.push(stream.subarray(at, at + 60))
    expect(readFileSync(collector.finalize().spillPath as string).equals(stream)).toBe(true)
    expect(writes).toBeGreaterThanOrEqual(Math.ceil(300 / 7))
  })
})
