/** The observer: keeps what it is told until the metrics library is loaded, then counts. */
import { AppError, type Host, type Observation, type Observer } from '@sluice/sdk'
import type { Meters } from './meters.ts'

/** Observations kept while the library loads; what is over it is dropped and counted. */
export const QUEUE_MAX = 4096

export function textmetrics(host: Pick<Host, 'log' | 'service'>, loopbackOnly: boolean): Observer {
  let meters: Meters | undefined
  let loading: Promise<Meters> | undefined
  let queue: Observation[] = []
  let dropped = 0

  // At the first observation and not in `register`, which also runs where another backend is chosen.
  const load = async (): Promise<Meters> => {
    const [{ createMeters }, prom] = await Promise.all([import('./meters.ts'), import('./prom-client.ts')])
    const loaded = createMeters(prom, () => host.service('vitals')?.())
    for (const observation of queue) loaded.record(observation)
    loaded.dropped(dropped)
    queue = []
    meters = loaded
    return loaded
  }

  const loadOnce = (): Promise<Meters> => {
    if (!loading) {
      loading = load()
      loading.catch((error: unknown) => host.log.error('the metrics library cannot be loaded', { error }))
    }
    return loading
  }

  return {
    name: 'textmetrics',
    loopbackOnly,
    record(observation) {
      if (meters) return meters.record(observation)
      if (queue.length < QUEUE_MAX) queue.push(observation)
      else dropped++
      void loadOnce()
    },
    async render() {
      const loaded = await loadOnce().catch((cause: unknown) => {
        throw new AppError('unavailable', 'The metrics library cannot be loaded.', { cause })
      })
      return loaded.render()
    },
  }
}
