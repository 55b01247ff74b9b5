/** Notices when the clock of the machine is set, or the machine slept, because times of messages and signatures depend on it. */
import { every, followClock, otherClocks, recallClocks } from '@sluice/kit'
import type { Clock, Events, Logger, Store } from '@sluice/sdk'

const LOOK_MS = 10_000
/** A time service makes smaller corrections. */
const JUMP_MS_MIN = 5000
/** What was seen longer ago is forgotten: a clock that has been right since then makes nothing too old. */
const SEEN_MS_MAX = 7 * 24 * 3_600_000

export interface ClockWatchOptions {
  readonly clock: Clock
  readonly store: Pick<Store, 'cluster' | 'keyValue'>
  readonly events: Events
  readonly log: Logger
  readonly signal: AbortSignal
}

interface SeenClocks {
  readonly atMs: number
  readonly others: readonly number[]
}

const seenBy = (store: ClockWatchOptions['store']) =>
  store.keyValue(store.cluster ? `node:${store.cluster.node}:gateway:clock` : 'gateway:clock')
const KEY = 'seen'

/** Takes over what the process before has seen of the clock. Call it before any age is measured. */
export async function recallSeenClocks({ clock, store }: Pick<ClockWatchOptions, 'clock' | 'store'>): Promise<void> {
  followClock(clock)
  const seen = (await seenBy(store).get(KEY)) as SeenClocks | undefined
  if (seen && clock.nowMs() - seen.atMs < SEEN_MS_MAX) recallClocks(clock, seen.others)
}

/** Compares the clock with the time that has passed, until `signal` aborts. */
export function watchClock({ clock, store, events, log, signal }: ClockWatchOptions): void {
  const aheadMs = (): number => clock.nowMs() - clock.monotonicMs()
  let before = aheadMs()
  void every(clock, LOOK_MS, signal, () => {
    const now = aheadMs()
    const ms = Math.round(now - before)
    before = now
    if (Math.abs(ms) < JUMP_MS_MIN) return
    log.warn('the clock jumped: it was set, or the machine slept', { ms, now: new Date(clock.nowMs()).toISOString() })
    events.emit({ type: 'clock_jumped', ms })
    const seen: SeenClocks = { atMs: clock.nowMs(), others: otherClocks(clock) }
    seenBy(store)
      .set(KEY, { ...seen })
      .catch((error: unknown) => log.warn('the jump of the clock is not stored', { error }))
  })
}
