/**
 * The waits for the end of a tree that a signal ends before.
 *
 * @module
 */
import { onAbort } from './abort.js'
import type { NativeTree } from './native.js'
import { MAX_TIMER_DELAY_MS } from './types.js'

/** One wait: what is done with it when the addon has answered, and what keeps the event loop alive until then. */
interface Wait {
  readonly gone: () => void
  readonly failed: (error: unknown) => void
  readonly vigil: NodeJS.Timeout
}

/**
 * The waits of one tree.
 *
 * A question to the addon cannot be taken back. So all waits share one, which keeps nothing alive by itself: whoever looks at a long-lived
 * tree again and again, with a deadline each time, leaves nothing behind.
 */
export class ExitWaits {
  private readonly waits = new Set<Wait>()
  private asked = false
  private referenced = true

  constructor(private readonly native: NativeTree) {}

  /** Resolves to `true` when the tree is gone, to `false` when the signal, which has not aborted yet, does so before. */
  before(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      // It never fires.
      const vigil = setTimeout(() => {}, MAX_TIMER_DELAY_MS)
      refer(vigil, this.referenced)
      const over = (): void => {
        disarm()
        clearTimeout(vigil)
        this.waits.delete(wait)
      }
      const wait: Wait = {
        gone: () => {
          over()
          resolve(true)
        },
        failed: (error) => {
          over()
          reject(error)
        },
        vigil,
      }
      const disarm = onAbort(signal, () => {
        over()
        resolve(false)
      })
      this.waits.add(wait)
      this.ask()
    })
  }

  /** Sets whether the waits keep the event loop alive. */
  setReferenced(referenced: boolean): void {
    this.referenced = referenced
    for (const { vigil } of this.waits) refer(vigil, referenced)
  }

  private ask(): void {
    if (this.asked) return
    this.asked = true
    const answered = (tell: (wait: Wait) => void): void => {
      // After a failure the next wait asks again.
      this.asked = false
      for (const wait of this.waits) tell(wait)
    }
    this.native.treeExited(false).then(
      () => answered((wait) => wait.gone()),
      (error: unknown) => answered((wait) => wait.failed(error)),
    )
  }
}

function refer(timer: NodeJS.Timeout, referenced: boolean): void {
  if (referenced) timer.ref()
  else timer.unref()
}
