/** Chooses the observers of `[observability]`, and hands each observation to all of them. */
import { errorText, type Logger, type Observation, type Observer, type SluiceEvent, type Span } from '@sluice/sdk'
import type { ComponentLogger } from '../log/log.ts'

/** The observer of `[observability] backend = "log"`: it logs each observation as a line. */
const logObserver = (log: ComponentLogger): Observer => {
  const own = log.child('observability')
  return {
    name: 'log',
    record({ kind, ...fields }) {
      const { span, ...rest } = { span: undefined, ...fields }
      own.info(kind, { ...snakeCase(rest), ...(span && spanFields(span)) })
    },
  }
}

const MILLISECOND_DIGITS = 3
const rounded = (ms: number): number => Number(ms.toFixed(MILLISECOND_DIGITS))

const spanFields = ({ trace, tookMs }: Span) => ({ took_ms: rounded(tookMs), trace_id: trace.traceId, span_id: trace.spanId })

/** Log lines name their fields in snake case. */
const snakeCase = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      name === 'tookMs' && typeof value === 'number' ? rounded(value) : value,
    ]),
  )

/** The observers that the configured backends name; `none` and `noop` name no observer. */
export const chooseObservers = (backends: readonly string[], offered: readonly Observer[], log: ComponentLogger): readonly Observer[] =>
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
export function observationOf(event: SluiceEvent): Observation | undefined {
  switch (event.type) {
    case 'sop_skipped':
      return { kind: 'sop_run', sop: event.sop, outcome: 'skipped' }
    case 'human_approval_resolved':
      return { kind: 'approval', state: event.state }
    case 'limit_reached':
      return { kind: 'limit', cause: event.limit }
    case 'loop_stopped':
      return { kind: 'limit', cause: 'loop' }
    case 'operator_notice':
      return { kind: 'notice', notice: event.kind }
    default:
      return undefined
  }
}
