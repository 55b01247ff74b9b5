/** The input of a deterministic step's tool: its template with what the step before gave (§4.3). */
import { AppError, type SopRun } from '@sluice/sdk'

const REFERENCE = /^\$(?:\.[^.\s]+)*$/

/**
 * What a text says as JSON; what is not JSON stands for itself. Null for no text.
 */
export function jsonOrText(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What a step's references are resolved in: the value of the last step that was carried out, else the event's payload. */
export function valueBefore({ results, steps, event }: SopRun): unknown {
  const last = results.findLast(({ step, status }) => status === 'completed' && steps[step - 1]?.kind === 'execute')
  return last ? (last.value ?? jsonOrText(last.output)) : jsonOrText(event.payload)
}

/**
 * The template with every text that is a reference as a whole, `$` or `$.a.b.0`, replaced by what it names; null: the value
 * itself. Throws `invalid_request` for a reference to nothing.
 */
export function resolveInput(template: unknown, value: unknown): unknown {
  return template === null || template === undefined ? value : resolve(template, value)
}

function resolve(template: unknown, value: unknown): unknown {
  if (typeof template === 'string') return REFERENCE.test(template) ? lookUp(template, value) : template
  if (Array.isArray(template)) return template.map((entry) => resolve(entry, value))
  if (typeof template !== 'object' || template === null) return template
  return Object.fromEntries(Object.entries(template).map(([key, entry]) => [key, resolve(entry, value)]))
}

function lookUp(reference: string, value: unknown): unknown {
  let found = value
  for (const key of reference.split('.').slice(1)) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) {
      throw new AppError('invalid_request', `The input names ${reference}, which the output before does not have`)
    }
    found = (found as Readonly<Record<string, unknown>>)[key]
  }
  return found
}
