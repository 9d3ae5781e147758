/**
 * `collect-2g`, `collect-2g-wide`, `collect-spill-2g`: a child writes 2 GiB; the last 64 KiB are kept, and in the last row all of
 * it goes to a file.
 *
 * Each sample has a new host, so that the memory of one is not the room of the next.
 */
import { mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { forgetPeak, peakKib, residentKib } from '../process-status.mjs'
import { ON_PIPES } from './contenders.mjs'

const BYTES = 2 * 2 ** 30

/** Room that the files of the row may need at once, and as much again. */
const ROOM = 2 * BYTES

/** Memory where there is room in it, so that no disk is measured. The files of all contenders are in the same file system. */
function fileSystem() {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize >= ROOM) return '/dev/shm'
  } catch {
    // There is none.
  }
  return tmpdir()
}

function prepare() {
  const directory = mkdtempSync(join(fileSystem(), 'dsh-subprocess-bench-'))
  return { parameters: { directory }, discard: () => rmSync(directory, { recursive: true, force: true }) }
}

/** Writes 4 KiB at once: what it writes with is the slower half of the row on a quiet machine. */
const narrow = (bytes) => ['head', '-c', String(bytes), '/dev/zero']

/** Writes 1 MiB at once. */
const wide = (bytes) => ['dd', 'if=/dev/zero', 'bs=1M', `count=${bytes / 2 ** 20}`, 'status=none']

const opener = (writer) => async (contender, { directory }) => {
  // What is loaded and made at the first use is no growth.
  await contender.start(writer(2 ** 20)).end
  return {
    async sample() {
      globalThis.gc()
      forgetPeak()
      const resident = residentKib()
      const started = performance.now()
      const { total, path } = await contender.collect(writer(BYTES), directory)
      const seconds = (performance.now() - started) / 1000
      const growth = Math.max(0, peakKib() - resident)
      if (total !== BYTES) throw new Error(`collected ${total} of ${BYTES} bytes`)
      if (directory !== undefined) {
        const { size } = statSync(path)
        if (size !== BYTES) throw new Error(`the file has ${size} of ${BYTES} bytes`)
        rmSync(path)
      }
      return { mib_s: BYTES / 2 ** 20 / seconds, memory_growth_kib: growth }
    },
  }
}

const row = {
  contenders: ON_PIPES,
  memories: [0],
  hosts: 'fresh',
  field: 'mib_s',
  effort: { warmUp: 0, rounds: 9, seconds: 60 },
}

export const COLLECT_ROWS = [
  { ...row, name: 'collect-2g', open: opener(narrow) },
  { ...row, name: 'collect-2g-wide', open: opener(wide) },
  { ...row, name: 'collect-spill-2g', prepare, open: opener(narrow) },
]
