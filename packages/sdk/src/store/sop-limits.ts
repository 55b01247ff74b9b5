/** Decides whether a run starts, waits or is skipped. Stores ask inside the commit that stores the run, so that the counts hold. */
import type { SopRunStatus } from './sop.ts'

export interface SopLimits {
  readonly cooldownMs: number
  /** 0: the procedure is switched off. */
  readonly concurrentMax: number
  /** The largest number of runs that wait. */
  readonly waitingMax: number
  /** Whether a run that waits for a person counts as one of `concurrentMax`. */
  readonly countsPaused: boolean
  /** The largest number of runs at work, of all procedures together; 0: no limit. */
  readonly totalMax: number
}

/** The present runs. */
export interface SopLoad {
  /** The runs of the procedure that have not ended, by status. */
  readonly counts: ReadonlyMap<SopRunStatus, number>
  /** The runs of all procedures that are at work: neither wait nor ask a person. Needed only with `totalMax`. */
  readonly total: number
  /** How long the procedure cools down from now on; 0 or less: not at all. */
  readonly coolsMs: number
}

/** `full`: the event is not taken, because as many runs wait as may; it may come again. */
export type StartVerdict = { readonly verdict: 'start' } | { readonly verdict: 'wait' | 'skip' | 'full'; readonly reason: string }

/** Returns the limit that all slots are taken of; undefined when one is free. */
export function takenLimit({ concurrentMax, countsPaused, totalMax }: SopLimits, { counts, total }: SopLoad): string | undefined {
  const of = (status: SopRunStatus): number => counts.get(status) ?? 0
  const active = of('running') + (countsPaused ? of('waiting_approval') + of('paused_checkpoint') : 0)
  if (active >= concurrentMax) return `too many runs of this procedure (max_concurrent = ${concurrentMax})`
  return totalMax > 0 && total >= totalMax ? `too many runs of all procedures (max_concurrent_total = ${totalMax})` : undefined
}

/**
 * Decides about a new event. A run waits while all slots are taken, or while earlier runs of its procedure wait. `cooldown_secs` skips an
 * event for which a slot is free; a run that waits begins when the slot is free and the procedure has cooled down.
 */
export function judgeStart(limits: SopLimits, load: SopLoad): StartVerdict {
  if (limits.concurrentMax === 0) return { verdict: 'skip', reason: 'the procedure is switched off (max_concurrent = 0)' }
  const waiting = load.counts.get('waiting') ?? 0
  const reason = takenLimit(limits, load) ?? (waiting > 0 ? 'earlier runs of this procedure wait' : undefined)
  if (reason === undefined) {
    if (load.coolsMs <= 0) return { verdict: 'start' }
    return { verdict: 'skip', reason: `cooling down for another ${Math.ceil(load.coolsMs / 1000)} s` }
  }
  if (waiting < limits.waitingMax) return { verdict: 'wait', reason }
  return { verdict: 'full', reason: `${reason}, and the queue is full (max_waiting = ${limits.waitingMax})` }
}

/** The order in which waiting runs begin: the higher first. */
export const SOP_RANKS = { low: 0, normal: 1, high: 2, critical: 3 } as const
