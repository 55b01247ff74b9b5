/**
 * Plivo: the signature (V3) and the events of its requests (plivo.com/docs/voice/concepts/signature-validation, /voice/xml), and the
 * messages of its audio streams (/voice/xml/the-stream-element).
 */
import { AppError, equalTexts, hmacSha256, type Raw, type Verified } from '@sluice/sdk/webhook'
import { formEvent } from './form-events.ts'
import { mediaCodec } from './media-codec.ts'
import { calledUrl, formOf, type RequestOptions, type Requests } from './telephony.ts'

const HEADER = 'x-plivo-signature-v3'
const NONCE = 'x-plivo-signature-v3-nonce'

export const plivoRequests: Requests = {
  verify,
  event: (raw) => formEvent(raw, { call: 'CallUUID', speech: 'Speech' }),
}

/** Throws `unauthorized` unless one of the signatures is the HMAC-SHA256 of the called URL, the sorted fields and the nonce. */
function verify(raw: Raw, { baseUrl, authToken }: RequestOptions): Verified {
  const [given, nonce] = [HEADER, NONCE].map((name) => raw.headers[name]?.trim() ?? '')
  if (!given || !nonce) throw new AppError('unauthorized', 'Invalid signature', { cause: `${HEADER} or ${NONCE} is missing` })
  const expected = plivoSignature(authToken, calledUrl(raw, baseUrl), formOf(raw.body), nonce)
  // A request carries one signature for each auth token of the account while a token is replaced.
  if (!given.split(',').some((signature) => equalTexts(signature.trim(), expected))) {
    throw new AppError('unauthorized', 'Invalid signature', { cause: `${HEADER} is wrong; the called URL must begin with ${baseUrl}` })
  }
  return { by: HEADER }
}

/** Fields of the query are written as in a query, fields of the body without separators. A repeated field counts in the order of its values. */
export function plivoSignature(authToken: string, calledUrl: string, form: URLSearchParams, nonce: string): string {
  const url = new URL(calledUrl)
  const query = sorted(url.searchParams)
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
  const fields = sorted(form)
    .map(([name, value]) => name + value)
    .join('')
  const hasFields = fields !== ''
  const separator = query !== '' || hasFields ? '?' : ''
  const base = `${url.origin}${url.pathname}${separator}${query}${query !== '' && hasFields ? '.' : ''}${fields}`
  return hmacSha256(authToken, `${base}.${nonce}`).toString('base64')
}

const sorted = (fields: URLSearchParams): (readonly [string, string])[] =>
  [...fields].toSorted(([a, v], [b, w]) => (a < b || (a === b && v < w) ? -1 : a === b && v === w ? 0 : 1))

export const plivoStream = mediaCodec({
  start: ['start.callId', 'start.streamId'],
  audio: (_stream, payload) => ({ event: 'playAudio', media: { contentType: 'audio/x-mulaw', sampleRate: 8000, payload } }),
  mark: (streamId, name) => ({ event: 'checkpoint', streamId, name }),
  played: { event: 'playedStream', name: 'name' },
  clear: (streamId) => ({ event: 'clearAudio', streamId }),
})
