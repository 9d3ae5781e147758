/**
 * What happens when an `AbortSignal` aborts.
 *
 * A signal has one listener however many trees wait for it: a harness hands one signal to thousands of spawns, and each listener of
 * its own would cost memory in the signal and, beyond ten, a warning.
 *
 * @module
 */

interface Fan {
  readonly callbacks: Set<() => void>
  readonly listener: () => void
}

const fans = new WeakMap<AbortSignal, Fan>()

/**
 * Calls back once when the signal aborts. The answer takes that back, as often as it is called.
 *
 * The signal has not aborted yet. A callback must not throw.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const fan = fans.get(signal) ?? listen(signal)
  // A function of its own, so that one callback can be there twice.
  const entry = (): void => callback()
  fan.callbacks.add(entry)
  return () => {
    if (fan.callbacks.delete(entry) && fan.callbacks.size === 0) forget(signal, fan)
  }
}

function listen(signal: AbortSignal): Fan {
  const callbacks = new Set<() => void>()
  const fan: Fan = {
    callbacks,
    listener() {
      forget(signal, fan)
      // Those that an earlier one takes back are not called any more: a set leaves out what is deleted during the walk.
      for (const callback of callbacks) callback()
      callbacks.clear()
    },
  }
  fans.set(signal, fan)
  signal.addEventListener('abort', fan.listener, { once: true })
  return fan
}

function forget(signal: AbortSignal, fan: Fan): void {
  if (fans.get(signal) === fan) fans.delete(signal)
  signal.removeEventListener('abort', fan.listener)
}
