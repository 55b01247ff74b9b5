/** The input of a deterministic step's tool: its template with what the step before gave (§4.3). */
import { AppError, type SopRun } from '@sluice/sdk'
import { isNestedTooDeeply } from './nesting.ts'

const REFERENCE = /^\$(?<root>event)?(?:\.[^.\s]+)*$/

/**
 * What a text says as JSON; what is not JSON, or nested too deeply, stands for itself. Null for no text.
 */
export function jsonOrText(text: string | null): unknown {
  if (text === null) return null
  try {
    const value: unknown = JSON.parse(text)
    return isNestedTooDeeply(value) ? text : value
  } catch {
    return text
  }
}

/** What a step's references are resolved in. */
export interface StepValues {
  /** `$`: the value of the last step that was carried out, else the event's payload. */
  readonly before: unknown
  /** `$event`: the event's payload. */
  readonly event: unknown
}

export function valuesFor({ results, steps, event }: SopRun): StepValues {
  const last = results.findLast(({ step, status }) => status === 'completed' && steps[step - 1]?.kind === 'execute')
  const payload = jsonOrText(event.payload)
  return { event: payload, before: last ? (last.value ?? jsonOrText(last.output)) : payload }
}

/**
 * The template with every text that is a reference as a whole, such as `$`, `$.a.b.0` or `$event.ref`, replaced by what it
 * names; null: the value before itself. Throws `invalid_request` for a reference to nothing.
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

/** A text that is no reference stands for itself. */
function lookUp(reference: string, { before, event }: StepValues): unknown {
  const match = REFERENCE.exec(reference)
  if (!match) return reference
  let found = match.groups?.root === undefined ? before : event
  for (const key of reference.split('.').slice(1)) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) {
      throw new AppError('invalid_request', `The input names ${reference}, which the output before does not have`)
    }
    found = (found as Readonly<Record<string, unknown>>)[key]
  }
  return found
}
