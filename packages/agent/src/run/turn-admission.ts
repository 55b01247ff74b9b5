/** Counts turns for the limits of their clients before they are accepted. */
import { type Logger, shardOfTurn } from '@sluice/sdk'
import type { Admission } from '../turn/admission.ts'
import type { TurnRequest } from '../turn/turn.ts'
import type { TurnStorage } from '../turn/turn-home.ts'
import { releaseKey } from './conduct-turn.ts'

export interface TurnAdmissionDeps {
  readonly store: TurnStorage
  readonly admission?: Admission | undefined
  readonly log: Logger
}

/** The part of a request that matters when the turn is refused. */
export type Refusable = Pick<TurnRequest, 'limited' | 'delivery' | 'idempotency' | 'session'>

export class TurnAdmission {
  readonly #deps: TurnAdmissionDeps

  constructor(deps: TurnAdmissionDeps) {
    this.#deps = deps
  }

  /** Whether a limit counts the turn, so that it has to be admitted first. */
  isLimited({ limited, delivery }: Refusable): boolean {
    return limited !== undefined && !delivery && this.#deps.admission?.hasLimits(limited) === true
  }

  /** Counts the turn for its client. Throws `rate_limited`, and releases the key, when a limit refuses it. */
  async admit(id: string, { limited, idempotency, session }: Refusable): Promise<void> {
    try {
      if (limited) await this.#deps.admission?.require(limited, { id, shard: shardOfTurn(session, id) })
    } catch (error) {
      await releaseKey(this.#deps, idempotency)
      throw error
    }
  }

  /** Takes back what was done for a turn that is not accepted. Never rejects. */
  async refuse(id: string, request: Refusable): Promise<void> {
    const { admission, log } = this.#deps
    await releaseKey(this.#deps, request.idempotency)
    if (!this.isLimited(request)) return
    await admission?.cancel(id).catch((error: unknown) => log.error('admission not taken back', { turn: id, error }))
  }
}
