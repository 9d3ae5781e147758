/** What the system says of this very process, in `/proc` (proc(5)). */
import { openSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs'

function field(text, name) {
  const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)
  if (found === null) throw new Error(`/proc tells no ${name}`)
  return Number(found[1])
}

/** Resident memory now, in KiB. */
export function residentKib() {
  return field(readFileSync('/proc/self/status', 'latin1'), 'VmRSS')
}

/** The most resident memory since {@link forgetPeak}, or since the start, in KiB. */
export function peakKib() {
  return field(readFileSync('/proc/self/status', 'latin1'), 'VmHWM')
}

/** Lets the peak begin anew with what is resident now. */
export function forgetPeak() {
  writeFileSync('/proc/self/clear_refs', '5')
}

/** What all threads of this process have done so far: the scheduler's own sums, the processor time in nanoseconds. */
export function activity() {
  let processorNs = 0
  let wakeUps = 0
  const threads = readdirSync('/proc/self/task')
  for (const thread of threads) {
    const directory = `/proc/self/task/${thread}`
    processorNs += Number(readFileSync(`${directory}/schedstat`, 'latin1').split(' ')[0])
    wakeUps += field(readFileSync(`${directory}/status`, 'latin1'), 'voluntary_ctxt_switches')
  }
  return { processorNs, wakeUps, threads: threads.length }
}

const statistics = Buffer.alloc(128)
let ownStatistics

/**
 * Processor time of the main thread, which is the event loop's, so far, in nanoseconds. To be called on it.
 *
 * The scheduler adds a running thread's time up when it next looks at it; `getrusage(2)` makes it look.
 */
export function loopProcessorNs() {
  ownStatistics ??= openSync(`/proc/self/task/${process.pid}/schedstat`)
  process.cpuUsage()
  const length = readSync(ownStatistics, statistics, 0, statistics.length, 0)
  return Number(statistics.latin1Slice(0, length).split(' ')[0])
}
