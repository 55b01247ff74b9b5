/** Wakes for every cron trigger at its instants (§4.3), over restarts and jumps of the clock alike: see `planCron`. */
import { setImmediate } from 'node:timers/promises'
import { signalScope } from '@sluice/kit'
import type { Clock, Logger } from '@sluice/sdk'
import { inPool } from './in-pool.ts'
import { inTurns } from './in-turns.ts'
import { InstantQueue } from './instant-queue.ts'
import type { CronDue, CronTrigger } from './plan-cron.ts'

export interface CronClockDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Up to when all that was due has been dealt with, in milliseconds since 1970; undefined at the very first start. */
  load(): Promise<number | undefined>
  save(cursorMs: number): Promise<void>
  /**
   * Resolves once what is due is durable. After a crash right behind it the same instant comes again, so procedure and
   * instant together are the key of its event. A rejection makes it come again soon, perhaps with a later instant.
   */
  due(due: CronDue): Promise<void>
}

/** So that jumps of the clock are noticed. */
const SLEEP_MAX_MS = 60_000
const RETRY_MS = 10_000
const DUE_AT_ONCE = 32
/** A cursor further ahead comes from a clock that was wrong, not from one that was put back: waiting for it could take years. */
const AHEAD_MAX_MS = 26 * 3_600_000
/** Triggers whose next instant is looked for before anything else has a turn. */
const FILLED_AT_ONCE = 200

interface Entry extends CronTrigger {
  /** Up to when its instants have been dealt with. */
  readonly afterMs: number
}

export class CronClock {
  readonly #deps: CronClockDeps
  #queue = new InstantQueue<Entry>()
  #triggers: readonly CronTrigger[] | undefined
  #changed = new AbortController()
  #cursorMs = 0

  constructor(deps: CronClockDeps) {
    this.#deps = deps
  }

  /** Replaces all triggers. Of the first ones what was missed since the cursor is due; of later ones nothing from before now. */
  setTriggers(triggers: Iterable<CronTrigger>): void {
    const own = Array.from(triggers, ({ sop, expression, timezone }) => ({ sop, expression, timezone }))
    this.#triggers = [...new Map(own.map((trigger) => [keyOf(trigger), trigger])).values()]
    this.#changed.abort()
  }

  /** Runs until the signal aborts and nothing is under way any more. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps
    const loaded = await this.#deps.load()
    this.#cursorMs = loaded ?? clock.nowMs()
    if (loaded === undefined) await this.#save()
    let filled: readonly CronTrigger[] | undefined
    while (!signal.aborted) {
      this.#changed = new AbortController()
      if (this.#cursorMs > clock.nowMs() + AHEAD_MAX_MS) {
        log.warn('the clock was far ahead before: procedures are due from now on', { cursor: new Date(this.#cursorMs).toISOString() })
        this.#cursorMs = clock.nowMs()
        this.#queue = new InstantQueue()
        filled = undefined
        await this.#save()
      }
      if (filled !== this.#triggers) {
        const fromMs = filled ? Math.max(clock.nowMs(), this.#cursorMs) : this.#cursorMs
        filled = this.#triggers
        await this.#fill(filled ?? [], fromMs)
      }
      const restMs = (await this.#deal(clock.nowMs())) ? 0 : RETRY_MS
      const waitMs = Math.min(SLEEP_MAX_MS, Math.max(this.#queue.firstMs - clock.nowMs(), restMs))
      using rest = signalScope([signal, this.#changed.signal])
      if (waitMs > 0) await clock.sleep(waitMs, rest.signal)
    }
  }

  /** Triggers that are known go on where they stand. */
  async #fill(triggers: readonly CronTrigger[], fromMs: number): Promise<void> {
    const known = new Map(this.#queue.values().map((entry) => [keyOf(entry), entry]))
    this.#queue = new InstantQueue()
    for (const [index, trigger] of triggers.entries()) {
      await this.#enqueue(known.get(keyOf(trigger)) ?? { ...trigger, afterMs: fromMs })
      if (index % FILLED_AT_ONCE === FILLED_AT_ONCE - 1) await setImmediate()
    }
  }

  async #enqueue(entry: Entry): Promise<void> {
    const { nextOccurrence } = await import('./cron-expression.ts')
    const nextMs = nextOccurrence(entry, entry.afterMs)
    if (nextMs !== null) this.#queue.push(nextMs, entry)
  }

  /** False if something could not be dealt with; it is still due then. */
  async #deal(nowMs: number): Promise<boolean> {
    const entries = this.#queue.takeUntil(nowMs)
    if (entries.length === 0) return true
    const { planCron } = await import('./plan-cron.ts')
    const plans: (Entry & CronDue)[] = []
    // To count what one has missed takes long enough.
    await inTurns(entries, 1, (entry) => plans.push(...planCron({ triggers: [entry], cursorMs: entry.afterMs, nowMs })))
    // Two triggers of one procedure may name the same instant: it is started once.
    const groups = [...Map.groupBy(plans, ({ sop, instantMs }) => JSON.stringify([sop, instantMs])).values()]
    const dealt = await inPool(groups, DUE_AT_ONCE, async (group) => ({ group, isDone: await this.#bring(group[0]) }))
    for (const { group, isDone } of dealt) for (const entry of group) await this.#enqueue(isDone ? { ...entry, afterMs: nowMs } : entry)
    if (dealt.some(({ isDone }) => !isDone)) return false
    this.#cursorMs = Math.max(this.#cursorMs, nowMs)
    await this.#save()
    return true
  }

  async #bring(plan: (Entry & CronDue) | undefined): Promise<boolean> {
    if (!plan) return true
    const { sop, expression, timezone, instantMs, missed } = plan
    try {
      await this.#deps.due({ sop, expression, timezone, instantMs, missed })
      return true
    } catch (error) {
      this.#deps.log.error('a procedure that is due was not started; it is tried again', { sop, expression, error })
      return false
    }
  }

  async #save(): Promise<void> {
    try {
      await this.#deps.save(this.#cursorMs)
    } catch (error) {
      this.#deps.log.error('how far cron triggers have come was not kept', { error })
    }
  }
}

const keyOf = ({ sop, expression, timezone }: CronTrigger): string => JSON.stringify([sop, expression, timezone])
