/**
 * The clock of cron triggers. It reports each due instant once, across restarts and jumps of the system clock: a durable cursor
 * says up to which instant everything due has been handled. See `planCron` for missed instants.
 */
import { setImmediate } from 'node:timers/promises'
import { forEachInBatches, mapConcurrently, signalScope } from '@sluice/kit'
import type { Clock, Logger } from '@sluice/sdk'
import { InstantQueue } from './instant-queue.ts'
import type { CronDue, CronTrigger } from './plan-cron.ts'

/** Stores the cursor and starts the procedures that are due. */
export interface CronHandler {
  /** Resolves to the stored cursor in milliseconds since 1970; undefined at the very first start. */
  load(): Promise<number | undefined>
  save(cursorMs: number): Promise<void>
  /**
   * Resolves once the start is durable. After a crash directly afterwards the same instant is reported again, so the event's key
   * must be made of procedure and instant. After a rejection the trigger is reported again soon, perhaps with a later instant.
   */
  due(due: CronDue): Promise<void>
}

/** The longest sleep, so that jumps of the system clock are noticed. */
const SLEEP_MAX_MS = 60_000
const RETRY_MS = 10_000
const STARTS_AT_ONCE = 32
/** A cursor further in the future was stored while the clock was wrong. Waiting for it could take years. */
const AHEAD_MAX_MS = 26 * 3_600_000
/** The number of triggers whose next instant is computed before the event loop goes on. */
const BATCH_SIZE = 200

interface Entry extends CronTrigger {
  /** The instants up to this one have been handled. */
  readonly afterMs: number
}

/** Set the triggers before `run`, so that instants missed while the daemon was down are reported. */
export class CronClock {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #handler: CronHandler
  #queue = new InstantQueue<Entry>()
  #triggers: readonly CronTrigger[] | undefined
  /** The triggers whose next instants are in the queue. */
  #queuedTriggers: readonly CronTrigger[] | undefined
  #changed = new AbortController()
  #cursorMs = 0

  constructor(clock: Clock, log: Logger, handler: CronHandler) {
    this.#clock = clock
    this.#log = log
    this.#handler = handler
  }

  /** Replaces all triggers. The first ones are due from the cursor on; triggers added later are due from now on. */
  setTriggers(triggers: Iterable<CronTrigger>): void {
    const own = Array.from(triggers, ({ sop, expression, timezone }) => ({ sop, expression, timezone }))
    this.#triggers = [...new Map(own.map((trigger) => [keyOf(trigger), trigger])).values()]
    this.#changed.abort()
  }

  /** Runs until the signal aborts; resolves once no start is in progress. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#loadCursor()
    while (!signal.aborted) {
      this.#changed = new AbortController()
      await this.#resetCursorFromTheFuture()
      await this.#applyTriggers()
      const minWaitMs = (await this.#startDue(this.#clock.nowMs())) ? 0 : RETRY_MS
      const waitMs = Math.min(SLEEP_MAX_MS, Math.max(this.#queue.firstMs - this.#clock.nowMs(), minWaitMs))
      using rest = signalScope([signal, this.#changed.signal])
      if (waitMs > 0) await this.#clock.sleep(waitMs, rest.signal)
    }
  }

  async #loadCursor(): Promise<void> {
    const stored = await this.#handler.load()
    this.#cursorMs = stored ?? this.#clock.nowMs()
    if (stored === undefined) await this.#saveCursor()
  }

  async #saveCursor(): Promise<void> {
    try {
      await this.#handler.save(this.#cursorMs)
    } catch (error) {
      this.#log.error('cron cursor not stored', { error })
    }
  }

  async #resetCursorFromTheFuture(): Promise<void> {
    const nowMs = this.#clock.nowMs()
    if (this.#cursorMs <= nowMs + AHEAD_MAX_MS) return
    this.#log.warn('cron cursor is far in the future, continuing from now', { cursor: new Date(this.#cursorMs).toISOString() })
    this.#cursorMs = nowMs
    this.#queue = new InstantQueue()
    this.#queuedTriggers = undefined
    await this.#saveCursor()
  }

  /** Fills the queue when the triggers have changed. Triggers that stay keep their place. */
  async #applyTriggers(): Promise<void> {
    if (this.#queuedTriggers === this.#triggers) return
    const fromMs = this.#queuedTriggers ? Math.max(this.#clock.nowMs(), this.#cursorMs) : this.#cursorMs
    const triggers = this.#triggers ?? []
    this.#queuedTriggers = this.#triggers
    const queued = new Map(this.#queue.values().map((entry) => [keyOf(entry), entry]))
    this.#queue = new InstantQueue()
    for (const [index, trigger] of triggers.entries()) {
      await this.#enqueue(queued.get(keyOf(trigger)) ?? { ...trigger, afterMs: fromMs })
      if (index % BATCH_SIZE === BATCH_SIZE - 1) await setImmediate()
    }
  }

  async #enqueue(entry: Entry): Promise<void> {
    const { nextOccurrence } = await import('@sluice/kit/cron-expression')
    const nextMs = nextOccurrence(entry, entry.afterMs)
    if (nextMs !== null) this.#queue.push(nextMs, entry)
  }

  /** Resolves to false when a start failed; its triggers stay due. */
  async #startDue(nowMs: number): Promise<boolean> {
    const entries = this.#queue.takeUntil(nowMs)
    if (entries.length === 0) return true
    const { planCron } = await import('./plan-cron.ts')
    const plans: (Entry & CronDue)[] = []
    // Counting the missed instants of one trigger takes long enough for a batch of its own.
    await forEachInBatches(entries, 1, (entry) => plans.push(...planCron({ triggers: [entry], cursorMs: entry.afterMs, nowMs })))
    // Two triggers of one procedure may name the same instant, which starts it once.
    const groups = [...Map.groupBy(plans, ({ sop, instantMs }) => JSON.stringify([sop, instantMs])).values()]
    const results = await mapConcurrently(groups, STARTS_AT_ONCE, async (group) => ({ group, isDone: await this.#start(group[0]) }))
    for (const { group, isDone } of results) for (const entry of group) await this.#enqueue(isDone ? { ...entry, afterMs: nowMs } : entry)
    if (results.some(({ isDone }) => !isDone)) return false
    this.#cursorMs = Math.max(this.#cursorMs, nowMs)
    await this.#saveCursor()
    return true
  }

  async #start(plan: (Entry & CronDue) | undefined): Promise<boolean> {
    if (!plan) return true
    const { sop, expression, timezone, instantMs, missed } = plan
    try {
      await this.#handler.due({ sop, expression, timezone, instantMs, missed })
      return true
    } catch (error) {
      this.#log.error('cron start failed, retrying', { sop, expression, error })
      return false
    }
  }
}

const keyOf = ({ sop, expression, timezone }: CronTrigger): string => JSON.stringify([sop, expression, timezone])
