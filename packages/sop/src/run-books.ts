/** Runs as the store has them: read, changed by the machine's rules, written back if nobody else changed them meanwhile. */
import { AppError, type SopRun } from '@sluice/sdk'
import type { SopEngineDeps } from './engine-deps.ts'
import { type SopInput, transition } from './machine.ts'
import { tellMoved } from './tell.ts'

/** How often a change is tried anew because somebody else was faster. */
const TRIES_MAX = 16

export class RunBooks {
  readonly #deps: Pick<SopEngineDeps, 'store' | 'events' | 'clock' | 'observe'>

  constructor(deps: Pick<SopEngineDeps, 'store' | 'events' | 'clock' | 'observe'>) {
    this.#deps = deps
  }

  /** Throws `not_found`. */
  async read(runId: string): Promise<SopRun> {
    const run = await this.#deps.store.get(runId)
    if (run) return run
    throw new AppError('not_found', `There is no run ${runId}`)
  }

  /**
   * Resolves to the run as it is on stable storage after `input`. Throws `not_found`, `conflict` for what the run does not take,
   * `unavailable` when it could not be kept; then it may be tried again.
   */
  async change(runId: string, input: SopInput): Promise<{ readonly before: SopRun; readonly after: SopRun }> {
    const { store, clock } = this.#deps
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const before = await this.read(runId)
      const moved = transition(before, input, clock.nowMs())
      if ('refused' in moved) throw new AppError('conflict', moved.refused)
      if (await store.advance(before, moved.run, moved.audit)) {
        tellMoved(this.#deps, before, moved.run, moved.audit)
        return { before, after: moved.run }
      }
    }
    throw new AppError('unavailable', `The run ${runId} is changed by others all the time`, { retryAfterSecs: 1 })
  }
}
