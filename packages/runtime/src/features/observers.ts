/** Chooses the observers of `[observability]`, and hands each observation to all of them. */
import { type EventEnvelope, errorText, type Logger, type Observation, type Observer } from '@sluice/sdk'

/** The observer of `[observability] backend = "log"`: it logs each observation as a line. */
const logObserver = (log: Logger): Observer => ({
  name: 'log',
  record({ kind, ...fields }) {
    log.info(kind, fields)
  },
})

/** The observers that the configured backends name; `none` and `noop` name no observer. */
export const chooseObservers = (backends: readonly string[], offered: readonly Observer[], log: Logger): readonly Observer[] =>
  [logObserver(log), ...offered].filter(({ name }) => backends.includes(name))

/** The result hands an observation to every observer. An observer that throws is logged, and does not disturb the work. */
export function notifyObservers(observers: readonly Observer[], log: Logger): (observation: Observation) => void {
  if (observers.length === 0) return () => {}
  return (observation) => {
    for (const observer of observers) {
      try {
        observer.record(observation)
      } catch (error) {
        log.error('observer failed', { observer: observer.name, error: errorText(error) })
      }
    }
  }
}

/** The observation of an event whose producer emits no observation itself. */
export function observationOf(event: EventEnvelope): Observation | undefined {
  switch (event.type) {
    case 'sop_skipped':
      return { kind: 'sop_run', sop: event.sop, outcome: 'skipped' }
    case 'human_approval_resolved':
      return { kind: 'approval', state: event.state }
    case 'limit_reached':
      return { kind: 'limit', cause: event.limit }
    case 'loop_stopped':
      return { kind: 'limit', cause: 'loop' }
    default:
      return undefined
  }
}
