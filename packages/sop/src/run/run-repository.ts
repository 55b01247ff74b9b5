/** The stored runs: reads them and changes them by the rules of the state machine, with optimistic concurrency. */
import { AppError, type MessageNews, parseSenderKey, SOP_ENDED, SOP_REPLAYABLE, type SopRun } from '@sluice/sdk'
import type { RunPorts } from './engine-ports.ts'
import type { Transition } from './gates.ts'
import { type SopInput, transition } from './machine.ts'
import { reportProgress } from './run-progress.ts'

/** A change that collides with another one is computed from the newer run and tried again. */
const ATTEMPTS_MAX = 16

/** Returns whether the run is completed, failed or cancelled. */
export const hasEnded = ({ status }: SopRun): boolean => SOP_ENDED.includes(status)

/** Every change is checked by the state machine and reported to subscribers and observers. */
export class RunRepository {
  readonly #ports: RunPorts

  constructor(ports: RunPorts) {
    this.#ports = ports
  }

  /** Throws `not_found`. */
  async read(runId: string): Promise<SopRun> {
    const run = await this.#ports.store.get(runId)
    if (run) return run
    throw new AppError('not_found', `There is no run ${runId}`)
  }

  /**
   * Applies `input` and resolves to the changed run once it is on stable storage. Throws `not_found`, `conflict` when the state
   * machine refuses the input, and `unavailable` when the run could not be stored; then the caller may try again.
   */
  async apply(runId: string, input: SopInput): Promise<SopRun> {
    const { store, clock, starters } = this.#ports
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const before = await this.read(runId)
      const result = transition(before, input, clock.nowMs())
      if ('refused' in result) throw new AppError('conflict', result.refused)
      const news = this.#newsOf(result)
      const numbers = await store.advance(before, result.run, result.audit, news)
      if (numbers) {
        if (news) starters.queued(news, numbers)
        reportProgress(this.#ports, before, result.run, result.audit)
        return result.run
      }
    }
    throw new AppError('unavailable', `The run ${runId} was changed concurrently ${ATTEMPTS_MAX} times in a row`, { retryAfterSecs: 1 })
  }

  /** A person who has ended the run knows it. */
  #newsOf({ run, audit }: Transition): MessageNews | undefined {
    const isTold = SOP_REPLAYABLE.includes(run.status) && !startersOf(run).includes(audit.at(-1)?.by ?? '')
    return isTold ? this.#ports.starters.newsOf(run) : undefined
  }
}

/** Returns the names that the cause of a run, and the person whose turn started it, have in the audit. */
function startersOf({ event: { by, starter } }: SopRun): readonly string[] {
  const person = starter === undefined ? undefined : parseSenderKey(starter)
  return [by, ...(person ? [`${person.channel}:${person.sender}`] : [])]
}
