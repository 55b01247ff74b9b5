/** An access token that a platform grants for some time, renewed by one request that all callers share. */
import { AppError, type Clock, Secret } from '@sluice/sdk'
import { untilAborted } from '../time/until-aborted.ts'

export interface GrantedToken {
  readonly token: string
  /** How long the platform accepts it. */
  readonly lastsSecs: number
}

interface HeldToken {
  readonly token: Secret
  readonly endsAtMs: number
}

/** A token is renewed this long before it ends, because the request with it takes time as well. */
const MARGIN_SECS = 60

export class SharedToken {
  readonly #clock: Clock
  readonly #request: () => Promise<GrantedToken>
  #held: HeldToken | undefined
  /** The request for a new token, which all callers share. */
  #renewing: Promise<HeldToken> | undefined

  /** `request` must end by itself, because no caller can abort it for the others. */
  constructor(clock: Clock, request: () => Promise<GrantedToken>) {
    this.#clock = clock
    this.#request = request
  }

  /** Returns the token, and gets a new one if it ends soon. Throws as `request` does, or `aborted`. */
  async current(signal: AbortSignal): Promise<string> {
    const held = this.#held
    if (held && this.#clock.monotonicMs() < held.endsAtMs) return held.token.reveal()
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined
    })
    return (await untilAborted(this.#renewing, signal, 'The wait for an access token was aborted')).token.reveal()
  }

  /**
   * Runs `attempt` with the token. If the platform rejected the token, forgets it and runs `attempt` once more with a new one.
   * Returns the last answer, which may be rejected again.
   */
  async use<Answer>(
    signal: AbortSignal,
    attempt: (token: string) => Promise<Answer>,
    isRejected: (answer: Answer) => boolean,
  ): Promise<Answer> {
    const token = await this.current(signal)
    const answer = await attempt(token)
    if (!isRejected(answer)) return answer
    this.#forget(token)
    return attempt(await this.current(signal))
  }

  /** Another caller may have renewed the token meanwhile. */
  #forget(rejected: string): void {
    if (this.#held?.token.reveal() === rejected) this.#held = undefined
  }

  async #renew(): Promise<HeldToken> {
    const { token, lastsSecs } = await this.#request()
    if (token === '' || !(lastsSecs > 0)) throw new AppError('unavailable', 'The platform granted no access token')
    const margin = Math.min(MARGIN_SECS, lastsSecs / 2)
    this.#held = { token: new Secret(token), endsAtMs: this.#clock.monotonicMs() + (lastsSecs - margin) * 1000 }
    return this.#held
  }
}
