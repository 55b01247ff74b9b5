/** Reads the body of a request that triggers procedures as the payload of its event: JSON, or any text. */
import { AppError } from '@sluice/sdk'
import type { HeaderReader } from '../middleware/client-address.ts'
import { parseJson } from '../request/body.ts'

const FIELDS_MAX = 10_000
const FORM = 'application/x-www-form-urlencoded'
/** Bodies of these types may be a text that is not JSON. */
const TEXT = /^(?:text\/|application\/xml$|application\/[^;]+\+xml$)/

/**
 * Returns JSON as it was received, a form as a JSON object, and the text of a text; null for an empty body. Throws
 * `invalid_request` for a body that its type does not fit, and `unsupported_type` for a compressed or a multipart body.
 */
export function payloadOf(body: Uint8Array, headers: HeaderReader): string | null {
  if (body.length === 0) return null
  const encoding = headers.get('content-encoding') ?? ''
  if (!/^(?:identity)?$/i.test(encoding.trim())) throw unsupported('A compressed body is not supported; send it without Content-Encoding')
  const [written = '', ...parameters] = (headers.get('content-type') ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (written.startsWith('multipart/')) throw unsupported('A multipart body is not supported; send JSON or a form')
  // Clients such as curl announce a form whatever they send.
  if (written !== FORM && !TEXT.test(written)) return checkedJson(body)
  const charset =
    parameters
      .find((part) => part.startsWith('charset='))
      ?.slice('charset='.length)
      .replaceAll('"', '') ?? 'utf-8'
  const text = decode(body, charset)
  if (isJson(body)) return text
  return written === FORM ? formAsJson(text) : text
}

const unsupported = (reason: string): AppError => new AppError('unsupported_type', reason)

function checkedJson(body: Uint8Array): string {
  parseJson(body)
  return Buffer.from(body).toString()
}

function isJson(body: Uint8Array): boolean {
  try {
    parseJson(body)
    return true
  } catch {
    return false
  }
}

function decode(body: Uint8Array, charset: string): string {
  const decoder = decoderOf(charset)
  try {
    return decoder.decode(body)
  } catch {
    throw new AppError('invalid_request', `The body is not valid ${decoder.encoding}`)
  }
}

function decoderOf(charset: string) {
  try {
    return new TextDecoder(charset, { fatal: true })
  } catch {
    throw unsupported('The charset of the body is not known; send UTF-8')
  }
}

/** A repeated field becomes a list. A form of the only field `payload` is the JSON in it, as GitHub and Slack send it. */
function formAsJson(text: string): string {
  if (text.split('&', FIELDS_MAX + 1).length > FIELDS_MAX) throw new AppError('invalid_request', `A form has at most ${FIELDS_MAX} fields`)
  const form = new URLSearchParams(text)
  const names = new Set(form.keys())
  const only = names.size === 1 ? form.getAll('payload') : []
  if (only[0] !== undefined && only.length === 1 && isJson(Buffer.from(only[0]))) return only[0]
  const fields = Map.groupBy(form, ([name]) => name)
  const members = [...fields].map(([name, pairs]) => [name, pairs.length === 1 ? pairs[0]?.[1] : pairs.map(([, value]) => value)])
  return JSON.stringify(Object.fromEntries(members))
}
