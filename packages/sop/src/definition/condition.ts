/** The condition of a trigger: one comparison with an event's payload or one of its headers, parsed once and false whenever the values cannot be compared. */
import { parsedOrUndefined } from '@sluice/kit/foreign-json'

export type Operator = '>=' | '<=' | '!=' | '==' | '>' | '<'

/**
 * `$.a.b.0 >= 5` compares the value at a path, and `$header.X-Event == push` a header. `>= 5` compares the payload itself; then both
 * must be numbers.
 */
export interface Condition {
  /** The name of a header in lower case; null: the payload. */
  readonly header: string | null
  /** Null: the payload as a text. Empty: the payload as JSON. */
  readonly path: readonly string[] | null
  readonly operator: Operator
  /** The value to compare with, without its quotes. */
  readonly value: string
}

/** The reason why a condition does not hold. */
export type Unmet = 'no_payload' | 'no_header' | 'not_json' | 'not_there' | 'not_comparable' | 'differs'

/** The payload and the headers of one event. The payload is parsed as JSON at most once, however many conditions read it. */
export class EventPayload {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
  #json: { readonly value: unknown } | undefined

  constructor(text: string | null, headers: Readonly<Record<string, string>> = {}) {
    this.text = text ?? ''
    this.headers = headers
  }

  get isEmpty(): boolean {
    return this.text === ''
  }

  /** Undefined when the payload is not JSON. */
  get json(): unknown {
    this.#json ??= { value: parsedOrUndefined(this.text) }
    return this.#json.value
  }
}

const LENGTH_MAX = 1000
const FORM = /^(?<path>\$header\.(?<header>[\w-]+)|\$(?:\.[^\s.<>=!"]+)*)?\s*(?<operator>>=|<=|!=|==|>|<)\s*(?<value>.*)$/s
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** Throws a `SyntaxError` whose message completes a sentence about the condition. */
export function parseCondition(text: string): Condition {
  if (text.length > LENGTH_MAX) throw new SyntaxError(`it is longer than ${LENGTH_MAX} characters`)
  const { path, header, operator, value: written = '' } = FORM.exec(text.trim())?.groups ?? {}
  if (!operator) throw new SyntaxError('a condition looks like `$.path.to.value >= 5` or `>= 5`, with one of >= <= != == > <')
  if (written === '') throw new SyntaxError(`a value is missing after ${operator}`)
  const value = unquoted(written)
  if (path === undefined && !NUMBER.test(value)) throw new SyntaxError('without a path the value must be a number')
  if (header !== undefined) return { header: checkedHeader(header), path: null, operator: operator as Operator, value }
  return { header: null, path: path === undefined ? null : path.split('.').slice(1), operator: operator as Operator, value }
}

/** Returns why the condition does not hold, or undefined when it holds. Never throws. */
export function unmet({ header, path, operator, value }: Condition, payload: EventPayload): Unmet | undefined {
  if (header !== null) {
    const found = Object.hasOwn(payload.headers, header) ? payload.headers[header] : undefined
    return found === undefined ? 'no_header' : compare(found, operator, value, false)
  }
  if (payload.isEmpty) return 'no_payload'
  if (path === null) return compare(payload.text.trim(), operator, value, true)
  const { json } = payload
  if (json === undefined) return 'not_json'
  const found = valueAt(json, path)
  if (found === undefined) return 'not_there'
  if (typeof found === 'object' && found !== null) return 'not_comparable'
  return compare(found === null ? '' : String(found), operator, value, false)
}

/** Returns whether the condition holds for a payload; null is an event without one. */
export const holds = (condition: Condition, payload: string | null): boolean => unmet(condition, new EventPayload(payload)) === undefined

/** Headers with credentials are never kept with an event. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'proxy-authorization', 'cookie', 'x-webhook-secret']

function checkedHeader(written: string): string {
  const name = written.toLowerCase()
  if (CREDENTIAL_HEADERS.includes(name)) throw new SyntaxError(`the header ${written} is a credential, which no event keeps`)
  return name
}

/** Operators and quotes of other languages, such as `===` and `<>`. Read as text, they would give a condition that always or never holds. */
const STRAY = /^[=<>'‘’“”`]/

function unquoted(written: string): string {
  if (STRAY.test(written)) throw new SyntaxError(`a text that begins with ${written[0]} must be in double quotes`)
  if (!written.startsWith('"')) return written
  try {
    const text: unknown = JSON.parse(written)
    if (typeof text === 'string') return text
  } catch {
    // Reported below.
  }
  throw new SyntaxError('the quoted text is incomplete, or something follows it')
}

/** Returns the value at a path of own keys and array indexes; undefined if the path does not exist. */
function valueAt(json: unknown, path: readonly string[]): unknown {
  let value = json
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    if (Array.isArray(value) && !/^\d+$/.test(key)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[key]
  }
  return value
}

/** Compares as numbers when both are numbers, else as texts by code unit. */
function compare(found: string, operator: Operator, wanted: string, onlyNumbers: boolean): Unmet | undefined {
  const areNumbers = NUMBER.test(found) && NUMBER.test(wanted)
  if (onlyNumbers && !areNumbers) return 'not_comparable'
  const order = areNumbers ? orderNumbers(Number(found), Number(wanted)) : orderTexts(found, wanted)
  return isInOrder(order, operator) ? undefined : 'differs'
}

const orderTexts = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** Numbers that differ only by rounding are equal. */
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
