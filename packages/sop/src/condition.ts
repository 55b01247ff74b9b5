/** What a trigger may ask of an event's payload (§2.4): one comparison, parsed once and false whenever it cannot be made. */
import { EventPayload } from './event-payload.ts'

export type Operator = '>=' | '<=' | '!=' | '==' | '>' | '<'

/** `$.a.b.0 >= 5`: the value at a path. `>= 5`: the payload itself, which must then be a number, as must the value. */
export interface Condition {
  /** Null: the payload as a text. Empty: the payload as JSON. */
  readonly path: readonly string[] | null
  readonly operator: Operator
  /** Without quotes around it. */
  readonly value: string
}

/** Why a condition does not hold. */
export type Unmet = 'no_payload' | 'not_json' | 'not_there' | 'not_comparable' | 'differs'

const LENGTH_MAX = 1000
const FORM = /^(?<path>\$(?:\.[^\s.<>=!"]+)*)?\s*(?<operator>>=|<=|!=|==|>|<)\s*(?<value>.*)$/s
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** Throws a `SyntaxError` whose message ends a sentence about the condition. */
export function parseCondition(text: string): Condition {
  if (text.length > LENGTH_MAX) throw new SyntaxError(`it is longer than ${LENGTH_MAX} characters`)
  const { path, operator, value: written = '' } = FORM.exec(text.trim())?.groups ?? {}
  if (!operator) throw new SyntaxError('a condition looks like `$.path.to.value >= 5` or `>= 5`, with one of >= <= != == > <')
  if (written === '') throw new SyntaxError(`a value is missing behind ${operator}`)
  const value = unquoted(written)
  if (path === undefined && !NUMBER.test(value)) throw new SyntaxError('without a path the value must be a number')
  return { path: path === undefined ? null : path.split('.').slice(1), operator: operator as Operator, value }
}

/** Why the condition does not hold; undefined: it does. Never throws. */
export function unmet({ path, operator, value }: Condition, payload: EventPayload): Unmet | undefined {
  if (payload.isEmpty) return 'no_payload'
  if (path === null) return compare(payload.text.trim(), operator, value, true)
  const { json } = payload
  if (json === undefined) return 'not_json'
  const found = valueAt(json, path)
  if (found === undefined) return 'not_there'
  if (typeof found === 'object' && found !== null) return 'not_comparable'
  return compare(found === null ? '' : String(found), operator, value, false)
}

export const holds = (condition: Condition, payload: string | null): boolean => unmet(condition, new EventPayload(payload)) === undefined

/** Of other languages: `===`, `<>`, quotes of another kind. Taken as a text, they would make a condition that never or always holds. */
const STRAY = /^[=<>'‘’“”`]/

function unquoted(written: string): string {
  if (STRAY.test(written)) throw new SyntaxError(`a text that begins with ${written[0]} stands in double quotes`)
  if (!written.startsWith('"')) return written
  try {
    const text: unknown = JSON.parse(written)
    if (typeof text === 'string') return text
  } catch {
    // Said below.
  }
  throw new SyntaxError('the text in quotes is not complete, or something follows it')
}

/** An object's own key, or a place in a list. */
function valueAt(json: unknown, path: readonly string[]): unknown {
  let value = json
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    if (Array.isArray(value) && !/^\d+$/.test(key)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[key]
  }
  return value
}

/** As numbers if both are, else as texts, by their characters. */
function compare(found: string, operator: Operator, wanted: string, onlyNumbers: boolean): Unmet | undefined {
  const areNumbers = NUMBER.test(found) && NUMBER.test(wanted)
  if (onlyNumbers && !areNumbers) return 'not_comparable'
  const order = areNumbers ? orderNumbers(Number(found), Number(wanted)) : orderTexts(found, wanted)
  return isInOrder(order, operator) ? undefined : 'differs'
}

const orderTexts = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** Equal but for rounding. */
const orderNumbers = (a: number, b: number): number => (a === b || Math.abs(a - b) < Number.EPSILON ? 0 : a < b ? -1 : 1)

function isInOrder(order: number, operator: Operator): boolean {
  switch (operator) {
    case '==':
      return order === 0
    case '!=':
      return order !== 0
    case '>':
      return order > 0
    case '<':
      return order < 0
    case '>=':
      return order >= 0
    case '<=':
      return order <= 0
  }
}
