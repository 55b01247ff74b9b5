/** Turns the fields of a log line into plain data of bounded size, without values that look like credentials. */
import { AppError, Secret } from '@sluice/sdk'

const REDACTED = '[secret]'
const STRING_CHARS_MAX = 8192
const ENTRIES_MAX = 50
const DEPTH_MAX = 6
const VALUES_MAX = 1000
const CAUSES_MAX = 5

/** Names of values that are credentials. A number under a counter's name, such as `input_tokens`, is shown. */
const CREDENTIAL_NAME =
  /token|secret|passw|passphrase|credential|authorization|cookie|api[_-]?key|private[_-]?key|access[_-]?key|signature|pairing[_-]?code|one[_-]?time/i
const COUNTER_NAME = /tokens$/i

/** Credentials inside other text. Each repetition is bounded, so that hostile text costs linear time. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s{1,4}[\w.~+/=-]{8,4096}/gi, `$1 ${REDACTED}`],
  [/\bsluice_[0-9a-f]{16,128}/g, REDACTED],
  [/\b(?:sk|pk|rk|gh[pousr]|glpat|xox[abeoprs])[-_][\w-]{16,512}/g, REDACTED],
  [/\beyJ[\w-]{8,300}\.[\w-]{8,4096}\.[\w-]{8,4096}/g, REDACTED],
  [/(\/\/[^\s/@:]{1,100}:)[^\s/@]{1,200}@/g, `$1${REDACTED}@`],
  [/([?&;](?:[\w-]{0,20}(?:token|secret|signature|password)|api[_-]?key|key|sig)=)[^&\s"']{1,2048}/gi, `$1${REDACTED}`],
]

/** Masks the configured secrets in a text. It gets the whole text, so that no part of a secret is left at a cut. */
export type Hide = (text: string) => string

export function redactText(whole: string, hide: Hide): string {
  const text = hide(whole)
  const cut = text.length > STRING_CHARS_MAX ? `${text.slice(0, STRING_CHARS_MAX)}… (${text.length} characters)` : text
  return PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), cut)
}

export interface PrintOptions {
  /** True: errors show their stack. */
  readonly withStack: boolean
}

/** The fields as plain JSON data. Never throws. */
export function printableFields(fields: object, hide: Hide, { withStack }: PrintOptions): Record<string, unknown> {
  try {
    return printTable(fields, { withStack, hide, above: [], room: { values: VALUES_MAX } }) as Record<string, unknown>
  } catch {
    return { fields: '[unprintable]' }
  }
}

interface Walk extends PrintOptions {
  readonly hide: Hide
  /** The objects that contain the value, outermost first. */
  readonly above: readonly object[]
  /** The number of values that the line still has room for. */
  readonly room: { values: number }
}

function printValue(value: unknown, walk: Walk): unknown {
  walk.room.values -= 1
  if (walk.room.values < 0) return '[…]'
  switch (typeof value) {
    case 'string':
      return redactText(value, walk.hide)
    case 'boolean':
    case 'undefined':
      return value
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'object':
      return value && printObject(value, walk)
    default:
      // A bigint, a symbol or a function.
      return redactText(String(value), walk.hide)
  }
}

function printObject(value: object, walk: Walk): unknown {
  if (value instanceof Secret) return REDACTED
  if (walk.above.includes(value)) return '[circular]'
  if (walk.above.length >= DEPTH_MAX) return '[…]'
  const inner = { ...walk, above: [...walk.above, value] }
  try {
    if (value instanceof Error) return printError(value, inner)
    if (value instanceof URL) return redactText(value.href, walk.hide)
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
    if (value instanceof Map) return printTable(Object.fromEntries(value), inner)
    if (Array.isArray(value) || value instanceof Set) return printList([...value], inner)
    if ('toJSON' in value && typeof value.toJSON === 'function') return printValue(value.toJSON(), inner)
    return printTable(value, inner)
  } catch {
    return '[unprintable]'
  }
}

function printList(items: readonly unknown[], walk: Walk): unknown[] {
  const printed = items.slice(0, ENTRIES_MAX).map((item) => printValue(item, walk))
  return items.length > ENTRIES_MAX ? [...printed, `… (${items.length} entries)`] : printed
}

function printTable(table: object, walk: Walk): unknown {
  const names = Object.keys(table)
  const entries = names
    .slice(0, ENTRIES_MAX)
    .map((name) => [name, printNamed(name, (table as Record<string, unknown>)[name], walk)] as const)
  if (names.length > ENTRIES_MAX) entries.push(['…', `${names.length} entries`])
  return Object.fromEntries(entries)
}

function printNamed(name: string, value: unknown, walk: Walk): unknown {
  const counted = typeof value === 'number' && COUNTER_NAME.test(name)
  const hidden = CREDENTIAL_NAME.test(name) && !counted && typeof value !== 'boolean' && value !== null && value !== undefined
  return hidden ? REDACTED : printValue(value, walk)
}

function printError(error: Error, walk: Walk): unknown {
  const code = error instanceof AppError ? error.code : (error as NodeJS.ErrnoException).code
  return {
    name: error.name,
    message: redactText(error.message, walk.hide),
    ...(typeof code === 'string' && { code }),
    ...(walk.withStack && error.stack && { stack: redactText(error.stack, walk.hide) }),
    ...(error.cause !== undefined && walk.above.length < CAUSES_MAX && { cause: printValue(error.cause, walk) }),
  }
}
