/** Notices when the clock of the machine is set, or the machine slept, because times of messages and signatures depend on it. */
import { every } from '@sluice/kit'
import type { Clock, Events, Logger } from '@sluice/sdk'

const LOOK_MS = 10_000
/** A time service makes smaller corrections. */
const JUMP_MS_MIN = 5000

export interface ClockWatchOptions {
  readonly clock: Clock
  readonly events: Events
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Compares the clock with the time that has passed, until `signal` aborts. */
export function watchClock({ clock, events, log, signal }: ClockWatchOptions): void {
  const aheadMs = (): number => clock.nowMs() - clock.monotonicMs()
  let before = aheadMs()
  void every(clock, LOOK_MS, signal, () => {
    const now = aheadMs()
    const ms = Math.round(now - before)
    before = now
    if (Math.abs(ms) < JUMP_MS_MIN) return
    log.warn('the clock jumped: it was set, or the machine slept', { ms, now: new Date(clock.nowMs()).toISOString() })
    events.emit({ type: 'clock_jumped', ms })
  })
}
