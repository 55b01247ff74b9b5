/**
 * The runs that a limit holds back, from the event to the first step.
 *
 * A waiting run is a run in the status `waiting`: the commit that takes the event stores it, with everything it needs to begin. The store
 * alone knows the waiting runs, so a restart or a crash at any moment changes nothing.
 *
 *     event   -> running …    a slot is free and no earlier run of the procedure waits
 *             -> waiting      all slots are taken (`max_concurrent`, `[sop] max_concurrent_total`), or earlier runs wait
 *             -> skipped      the procedure cools down or is switched off, or `max_waiting` runs wait and the sender does not repeat
 *             -> refused      `max_waiting` runs wait, and the sender repeats
 *     waiting -> running …    a slot is free and the procedure has cooled down: by priority, then in the order of arrival
 *             -> waiting      of cron and board triggers, a newer event takes the place of the one that waits
 *             -> cancelled    by a person
 *             -> expired      after `[delivery] max_age_hours`; a replay makes a new run of the same event
 *
 * Every daemon looks for runs that may begin when it takes over shards, when the status of a run changes, when another process has changed
 * runs, when definitions were loaded, and while runs wait at the next moment at which a cooldown or a wait ends, at the latest after a
 * minute. The store checks the limits again in the commit in which a run begins, so daemons that look at once start nothing twice.
 */
import { ageMs } from '@sluice/kit'
import { AppError, errorText, type SopRun } from '@sluice/sdk'
import { limitsOf } from './begin-run.ts'
import type { RunPorts } from './engine-ports.ts'
import { transition } from './machine.ts'
import { reportProgress } from './run-progress.ts'
import type { RunRepository } from './run-repository.ts'

const HOUR_MS = 3_600_000
/** While runs wait, a change of which no event told is noticed after this time. */
const LOOK_EVERY_MS = 60_000
const RETRY_MS = 5_000

export class WaitingRuns {
  readonly #ports: RunPorts
  readonly #runs: RunRepository
  /** Carries on a run that has begun. */
  readonly #carryOn: (run: SopRun) => void
  #isOpen = false
  /** True when a run may begin that the last look did not see. */
  #isStale = false
  #looking: Promise<void> | null = null
  #rest = new AbortController()

  constructor(ports: RunPorts, runs: RunRepository, carryOn: (run: SopRun) => void) {
    this.#ports = ports
    this.#runs = runs
    this.#carryOn = carryOn
  }

  /** Begins runs from now on. */
  open(): void {
    this.#isOpen = true
    this.wake()
  }

  /** Begins no more runs. Resolves once none is being stored. */
  async stop(): Promise<void> {
    this.#isOpen = false
    this.#rest.abort()
    await this.#looking
  }

  /** Looks for runs that may begin. */
  wake(): void {
    if (!this.#isOpen) return
    this.#isStale = true
    this.#rest.abort()
    this.#looking ??= this.#keepLooking()
  }

  /** Ends when no run waits. Never rejects. */
  async #keepLooking(): Promise<void> {
    const { clock, log } = this.#ports
    while (this.#isOpen && this.#isStale) {
      this.#isStale = false
      this.#rest = new AbortController()
      let waitMs: number | null
      try {
        waitMs = await this.#look()
      } catch (error) {
        log.warn('waiting procedure runs not read, trying again', { reason: errorText(error) })
        waitMs = RETRY_MS
      }
      if (this.#isStale || waitMs === null) continue
      await clock.sleep(waitMs, this.#rest.signal)
      this.#isStale = true
    }
    this.#looking = null
  }

  /** Begins every run that may begin, and expires runs that have waited too long. Resolves to the time until the next look; null: no run waits. */
  async #look(): Promise<number | null> {
    const { store, clock, library, config } = this.#ports
    const { max_concurrent_total: total, max_age_hours: ageHours } = config()
    const rows = await store.waiting()
    /** Procedures without a free slot: their runs begin in order. */
    const held = new Set<string>()
    let waitMs: number | null = null
    const lookIn = (ms: number): void => {
      waitMs = Math.min(waitMs ?? LOOK_EVERY_MS, Math.max(1, ms))
    }
    for (const { id, sop, sinceMs } of rows) {
      if (!this.#isOpen) return null
      const nowMs = clock.nowMs()
      const leftMs = ageHours * HOUR_MS - ageMs(clock, sinceMs)
      if (leftMs <= 0) {
        await this.#expire(id, ageHours)
        continue
      }
      lookIn(leftMs)
      const before = held.has(sop) ? undefined : await store.get(id)
      if (before?.status !== 'waiting') continue
      const next = transition(before, { type: 'begin' }, nowMs)
      if ('refused' in next) continue
      const limits = limitsOf(library.get(sop), total)
      const result = await store.begin({ before, after: next.run, audit: next.audit, limits }, nowMs)
      if (result === 'begun') {
        reportProgress(this.#ports, before, next.run, next.audit)
        this.#carryOn(next.run)
      } else if (result === 'changed') this.#isStale = true
      else {
        held.add(sop)
        if (result.inMs !== null) lookIn(result.inMs)
      }
    }
    return waitMs
  }

  async #expire(runId: string, ageHours: number): Promise<void> {
    try {
      const run = await this.#runs.apply(runId, { type: 'tooOld', hours: ageHours })
      this.#ports.log.warn('procedure run expired: no slot was free in time', { run: runId, sop: run.sop, hours: ageHours })
    } catch (error) {
      if (!(error instanceof AppError && (error.code === 'conflict' || error.code === 'not_found'))) throw error
    }
  }
}
