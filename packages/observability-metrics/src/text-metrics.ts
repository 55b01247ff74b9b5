/** The observer of `GET /metrics`. It queues observations until the metrics library is loaded, then counts them. */
import { AppError, type Host, type Observation, type Observer } from '@sluice/sdk'
import type { Meters } from './meters.ts'

/** The number of observations kept while the library loads. Later ones are dropped and counted. */
export const QUEUE_MAX = 4096

export class TextMetrics implements Observer {
  readonly name = 'textmetrics'
  readonly loopbackOnly: boolean
  readonly #host: Pick<Host, 'log' | 'service'>
  #meters: Meters | undefined
  #loading: Promise<Meters> | undefined
  #queue: Observation[] = []
  #dropped = 0

  constructor(host: Pick<Host, 'log' | 'service'>, loopbackOnly: boolean) {
    this.#host = host
    this.loopbackOnly = loopbackOnly
  }

  record(observation: Observation): void {
    if (this.#meters) {
      this.#meters.record(observation)
      return
    }
    if (this.#queue.length < QUEUE_MAX) this.#queue.push(observation)
    else this.#dropped++
    void this.#loadOnce()
  }

  /** Throws `unavailable` if the metrics library cannot be loaded. */
  async render(): Promise<{ readonly contentType: string; readonly body: string }> {
    const meters = await this.#loadOnce().catch((cause: unknown) => {
      throw new AppError('unavailable', 'The metrics library cannot be loaded.', { cause })
    })
    return meters.render()
  }

  /** Starts to load at the first observation, not in the constructor, since the feature is built even if another backend is chosen. */
  #loadOnce(): Promise<Meters> {
    if (!this.#loading) {
      this.#loading = this.#load()
      this.#loading.catch((error: unknown) => this.#host.log.error('loading the metrics library failed', { error }))
    }
    return this.#loading
  }

  async #load(): Promise<Meters> {
    const [{ createMeters }, prom] = await Promise.all([import('./meters.ts'), import('./prom-client.ts')])
    const meters = createMeters(prom, {
      vitals: () => this.#host.service('vitals')?.(),
      backlog: () => this.#host.service('backlog')?.(),
    })
    for (const observation of this.#queue) meters.record(observation)
    meters.countDropped(this.#dropped)
    this.#queue = []
    this.#meters = meters
    return meters
  }
}
