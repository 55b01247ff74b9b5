/**
 * Ages of stored times by a wall clock that may be set. A clock that is wrong for a while, such as a year ahead, must not make everything
 * that waits too old.
 */
import type { Clock } from '@sluice/sdk'

type Clocks = Pick<Clock, 'monotonicMs' | 'nowMs'>

/** A time in which the clock was not set. */
interface Span {
  /** Its beginning, by the monotonic clock. */
  readonly fromMs: number
  /** The wall clock minus the monotonic clock. */
  readonly aheadMs: number
}

/** A time service makes smaller corrections. */
const JUMP_MS_MIN = 5000
/** A jump is noticed within this time. */
const NOTICED_MS = 5000
const SPANS_MAX = 100
const EARLIER_MAX = 10

const spansOf = new WeakMap<Clocks, Span[]>()
/** What the clocks that an earlier process has seen show now, minus the monotonic clock. */
const earlierOf = new WeakMap<Clocks, readonly number[]>()

/** Notices when the clock was set. Call it each second from the start on: messages may arrive between a jump and the next call. */
export function followClock(clock: Clocks): void {
  spans(clock)
}

/** Returns by how many milliseconds the clock is ahead of each other clock that this process or the one before has seen, for `recallClocks`. */
export function otherClocks(clock: Clocks): readonly number[] {
  const all = spans(clock)
  const aheadMs = all.at(-1)?.aheadMs ?? 0
  const others = [...(earlierOf.get(clock) ?? []), ...all.map((span) => span.aheadMs)].map((other) => Math.round(aheadMs - other))
  return [...new Set(others)].filter((ms) => Math.abs(ms) >= JUMP_MS_MIN).slice(-EARLIER_MAX)
}

/**
 * Takes over the clocks that the process before has seen, so that a restart while the clock is wrong makes nothing too old. Call it at the
 * start.
 */
export function recallClocks(clock: Clocks, others: readonly number[]): void {
  const aheadMs = spans(clock).at(-1)?.aheadMs ?? 0
  earlierOf.set(
    clock,
    others.map((ms) => aheadMs - ms),
  )
}

/**
 * Returns for how many milliseconds this machine has been awake since the wall clock showed `sinceMs`, leaving out jumps of the clock that were
 * noticed: the shortest time where the clock may have shown `sinceMs` more than once. A time before the start of the process may be one of
 * any clock that was seen; a time that none has reached, such as that of a process before while the clock was ahead, counts from the
 * start. Such a clock may also be one that the process before has seen. Never negative.
 */
export function ageMs(clock: Clocks, sinceMs: number): number {
  const all = spans(clock)
  const nowMs = clock.monotonicMs()
  const startMs = all[0]?.fromMs ?? nowMs
  const ages = all.flatMap(({ fromMs, aheadMs }, at) => {
    const thenMs = sinceMs - aheadMs
    const toMs = all[at + 1]?.fromMs ?? nowMs
    return thenMs <= toMs && (thenMs >= fromMs - NOTICED_MS || thenMs < startMs) ? [Math.max(0, nowMs - thenMs)] : []
  })
  const earlier = (earlierOf.get(clock) ?? []).map((aheadMs) => sinceMs - aheadMs).filter((thenMs) => thenMs <= startMs)
  const known = [...ages, ...earlier.map((thenMs) => nowMs - thenMs)]
  return known.length > 0 ? Math.min(...known) : nowMs - startMs
}

/**
 * Returns the time before which everything is at least `ageMs` milliseconds old, by the wall clock and by the time in which this machine was
 * awake. A clock that is set ahead makes nothing that old.
 */
export function olderThanMs(clock: Clocks, ageMs: number): number {
  const thenMs = clock.monotonicMs() - ageMs
  const all = spans(clock)
  const span = all.findLast(({ fromMs }) => fromMs <= thenMs)
  const aheads = span ? [span.aheadMs] : [all[0]?.aheadMs ?? 0, ...(earlierOf.get(clock) ?? [])]
  return Math.min(...aheads.map((aheadMs) => thenMs + aheadMs), clock.nowMs() - ageMs)
}

/** Returns by how much the clock was set ahead since the process began to follow it; negative when it was set back. */
export function jumpedMs(clock: Clocks): number {
  const all = spans(clock)
  return (all.at(-1)?.aheadMs ?? 0) - (all[0]?.aheadMs ?? 0)
}

function spans(clock: Clocks): readonly Span[] {
  const known = spansOf.get(clock) ?? []
  if (known.length === 0) spansOf.set(clock, known)
  const fromMs = clock.monotonicMs()
  const aheadMs = clock.nowMs() - fromMs
  const last = known.at(-1)
  if (!last || Math.abs(aheadMs - last.aheadMs) >= JUMP_MS_MIN) known.push({ fromMs, aheadMs })
  // The first one is kept for the times before the start.
  if (known.length > SPANS_MAX) known.splice(1, 1)
  return known
}
