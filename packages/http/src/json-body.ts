/** Bytes to JSON, with a sentence for whatever is wrong with them. */
import { isUtf8 } from 'node:buffer'
import type { HeaderReader } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'

/** Deeper than this, code that walks a value could run out of stack. */
const NESTING_MAX = 64

const invalid = (detail: string): AppError => new AppError('invalid_request', detail)

/** Throws `invalid_request` unless the body is announced as `application/json`, with or without parameters. */
export function checkJsonType(headers: HeaderReader): void {
  const type = headers.get('content-type') ?? ''
  const end = type.indexOf(';')
  if ((end < 0 ? type : type.slice(0, end)).trim().toLowerCase() !== 'application/json') {
    throw invalid('The Content-Type must be application/json')
  }
}

/** Throws `invalid_request` for what is not one JSON value in UTF-8. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw invalid('The body is empty; JSON is expected')
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8')
  const text = asBuffer(bytes).toString('utf8')
  if (isNestedTooDeeply(text)) throw invalid(`The body is nested more than ${NESTING_MAX} levels deep`)
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the body.
    throw invalid('The body is not valid JSON')
  }
}

/** As `parseJson`, for a JSON object. */
export function parseJsonObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const value = parseJson(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('The body must be a JSON object')
  return value as Record<string, unknown>
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const QUOTE = 34
const BACKSLASH = 92

function isNestedTooDeeply(text: string): boolean {
  let depth = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) index = endOfString(text, index)
    // `{` and `[`, `}` and `]`: each pair differs in one bit only.
    else if ((code | 32) === 123) {
      if (++depth > NESTING_MAX) return true
    } else if ((code | 32) === 125) depth -= 1
  }
  return false
}

/** The index of the quote that closes the string opened at `start`, or the text's length. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
