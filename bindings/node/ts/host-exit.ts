/**
 * The end of this process, or of this worker, as far as JavaScript sees it: `process.exit()`, an uncaught exception, an unhandled
 * rejection, an event loop that is empty. What it cannot see is the wardens' (docs/ownership.md).
 *
 * @module
 */

/** What is to be killed when the host exits. */
export interface Mortal {
  killAll(): void
}

const mounted = new Set<Mortal>()

/** Kills what is mounted before the host's own listeners run. One listener, however many runtimes there are. */
export function mount(mortal: Mortal): void {
  if (mounted.size === 0) process.prependListener('exit', killMounted)
  mounted.add(mortal)
}

/** Takes {@link mount} back. */
export function unmount(mortal: Mortal): void {
  if (mounted.delete(mortal) && mounted.size === 0) process.off('exit', killMounted)
}

/** Nothing asynchronous runs any more, and a failure must neither keep the others from being killed nor change the exit code. */
function killMounted(): void {
  for (const mortal of mounted) {
    try {
      mortal.killAll()
    } catch {
      // The host exits.
    }
  }
}
