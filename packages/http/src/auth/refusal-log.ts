/** Logs why requests to webhooks are refused: once a minute for each reason, so that a sender of forged requests cannot fill the log. */
import { BoundedMap } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'

const LOGGED_EVERY_MS = 60_000
const REASONS_MAX = 100

export class RefusalLog {
  readonly #runtime: Pick<Runtime, 'clock' | 'log'>
  /** When each reason was logged last. */
  readonly #loggedMs = new BoundedMap<string, number>(REASONS_MAX)

  constructor(runtime: Pick<Runtime, 'clock' | 'log'>) {
    this.#runtime = runtime
  }

  /** The fields are the reason and what identifies the webhook; neither has a secret. */
  note(fields: Readonly<Record<string, string>>): void {
    const { clock, log } = this.#runtime
    const key = Object.values(fields).join('\n')
    const nowMs = clock.monotonicMs()
    if (nowMs - (this.#loggedMs.get(key) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return
    this.#loggedMs.set(key, nowMs)
    log.warn('webhook request refused', fields)
  }
}
