/** An abort signal for one piece of work. It joins longer-lived signals and a time limit, and removes its listeners at the end. */

import type { Clock } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { systemClock } from './system-clock.ts'

export interface SignalScope extends Disposable {
  /** Aborts with the first of the joined signals, after the time limit, or when the scope is disposed. */
  readonly signal: AbortSignal
  /** Whether the time limit aborted the signal. */
  readonly timedOut: boolean
}

/** A timer that fires this much after its due time was delayed: the process was suspended or the event loop was blocked. */
const HELD_UP_MS = 500
/** Time for the event loop to read what arrived in the meantime. */
const CATCH_UP_MS = 1000

/** Returns the further wait in milliseconds after a timer that was due at `dueMs`; 0 if it fired in time. Both times are monotonic. */
export const catchUpMs = (dueMs: number, nowMs: number): number => (nowMs - dueMs > HELD_UP_MS ? CATCH_UP_MS : 0)

const DISPOSED = new AppError('aborted', 'The work that this signal belongs to has ended')

/**
 * Declare it with `using` in the function that awaits the work. Leaving that function clears the timer, removes the listeners
 * and aborts the signal, so work that is not awaited ends at once instead of running on without a limit. Node keeps a
 * nested composite of its own joined and timed signals alive as long as one of its sources lives.
 */
export function signalScope(signals: readonly (AbortSignal | undefined)[], timeoutMs?: number, clock: Clock = systemClock): SignalScope {
  const controller = new AbortController()
  const { signal } = controller
  const sources = signals.filter((source) => source !== undefined)
  let timedOut = false

  const release = (): void => {
    for (const source of sources) source.removeEventListener('abort', follow)
  }
  const follow = (): void => {
    release()
    controller.abort(sources.find(({ aborted }) => aborted)?.reason)
  }
  const limit = async (ms: number): Promise<void> => {
    const dueMs = clock.monotonicMs() + ms
    await clock.sleep(ms, signal)
    if (signal.aborted) return
    // Timers run before sockets are read, so an answer may already be there.
    const moreMs = catchUpMs(dueMs, clock.monotonicMs())
    if (moreMs > 0) return limit(moreMs)
    release()
    timedOut = true
    controller.abort(new DOMException('The time limit was exceeded', 'TimeoutError'))
  }

  if (sources.some(({ aborted }) => aborted)) follow()
  else {
    for (const source of sources) source.addEventListener('abort', follow, { once: true })
    if (timeoutMs !== undefined) void limit(timeoutMs)
  }
  return {
    signal,
    get timedOut() {
      return timedOut
    },
    [Symbol.dispose]() {
      release()
      controller.abort(DISPOSED)
    },
  }
}
