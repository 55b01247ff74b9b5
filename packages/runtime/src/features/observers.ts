/** Chooses the observers, and has the backends that need no package: `log`, and `none` or `noop`. */
import { errorText, type Logger, type Observation, type Observer } from '@sluice/sdk'

/** `[observability] backend = "log"`: each observation is a line. */
const logObserver = (log: Logger): Observer => ({
  name: 'log',
  record({ kind, ...fields }) {
    log.info(kind, fields)
  },
})

/** The observers that the configured backends turn on. */
export const chooseObservers = (backends: readonly string[], offered: readonly Observer[], log: Logger): readonly Observer[] =>
  [logObserver(log), ...offered].filter(({ name }) => backends.includes(name))

/** Tells every observer; one that throws is logged and never disturbs the work it observes. */
export function tellObservers(observers: readonly Observer[], log: Logger): (observation: Observation) => void {
  if (observers.length === 0) return () => {}
  return (observation) => {
    for (const observer of observers) {
      try {
        observer.record(observation)
      } catch (error) {
        log.error('an observer failed', { observer: observer.name, error: errorText(error) })
      }
    }
  }
}
