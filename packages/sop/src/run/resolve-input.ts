/** The tool input of a step in deterministic mode: its template, filled with the event's payload and the previous result. */
import { AppError, type SopRun } from '@sluice/sdk'
import { jsonOrText } from '../definition/json-text.ts'

const REFERENCE = /^\$(?<root>event|header)?(?:\.[^.\s]+)*$/

/** The values that references of a step resolve to. */
export interface StepValues {
  /** `$`: the value of the last completed step other than a checkpoint; without one, the event's payload. */
  readonly before: unknown
  /** `$event`: the event's payload. */
  readonly event: unknown
  /** `$header`: the headers that the event keeps, with names in lower case. */
  readonly header?: Readonly<Record<string, string>>
}

/** Returns the values for the references of the run's present step. */
export function valuesFor({ results, steps, event }: SopRun): StepValues {
  const last = results.findLast(({ step, status }) => status === 'completed' && steps[step - 1]?.kind === 'execute')
  const payload = jsonOrText(event.payload)
  return { event: payload, header: event.headers ?? {}, before: last ? (last.value ?? jsonOrText(last.output)) : payload }
}

/**
 * Replaces every string of the template that is a reference as a whole, such as `$`, `$.a.b.0`, `$event.ref` or `$header.X-Event`, by the value it
 * names; the name of a header may be in any case. A null template means `$`. Throws `invalid_request` for a reference to a missing value.
 */
export function resolveInput(template: unknown, values: StepValues): unknown {
  return template === null || template === undefined ? values.before : resolve(template, values)
}

function resolve(template: unknown, values: StepValues): unknown {
  if (typeof template === 'string') return lookUp(template, values)
  if (Array.isArray(template)) return template.map((entry) => resolve(entry, values))
  if (typeof template !== 'object' || template === null) return template
  return Object.fromEntries(Object.entries(template).map(([key, entry]) => [key, resolve(entry, values)]))
}

/** Returns the value of a reference; returns any other text unchanged. */
function lookUp(reference: string, { before, event, header = {} }: StepValues): unknown {
  const match = REFERENCE.exec(reference)
  if (!match) return reference
  const root = match.groups?.root
  let found = root === undefined ? before : root === 'event' ? event : header
  const names = reference.split('.').slice(1)
  for (const key of root === 'header' ? names.map((name) => name.toLowerCase()) : names) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) {
      throw new AppError(
        'invalid_request',
        `The input refers to ${reference}, which ${root === undefined ? 'the previous output' : 'the event'} does not contain`,
      )
    }
    found = (found as Readonly<Record<string, unknown>>)[key]
  }
  return found
}
