/**
 * Twilio: the signature and the events of its requests (twilio.com/docs/usage/security, /voice/twiml), and the messages of its media
 * streams (/voice/media-streams/websocket-messages).
 */
import { AppError, equalTexts, hmac, type Raw, type Verified } from '@sluice/sdk/webhook'
import { formEvent } from './form-events.ts'
import { mediaCodec } from './media-codec.ts'
import { calledUrl, formOf, type RequestOptions, type Requests } from './telephony.ts'

const HEADER = 'x-twilio-signature'

export const twilioRequests: Requests = {
  verify,
  event: (raw) => formEvent(raw, { call: 'CallSid', speech: 'SpeechResult' }),
}

/** Throws `unauthorized` unless the request carries the HMAC-SHA1 of the called URL and the sorted fields. */
function verify(raw: Raw, { baseUrl, authToken }: RequestOptions): Verified {
  const given = raw.headers[HEADER]?.trim() ?? ''
  if (given === '') throw new AppError('unauthorized', 'Invalid signature', { cause: `${HEADER} is missing` })
  const [url, form] = [calledUrl(raw, baseUrl), formOf(raw.body)]
  if (![url, ...withAndWithoutPort(url)].some((called) => equalTexts(given, twilioSignature(authToken, called, form)))) {
    throw new AppError('unauthorized', 'Invalid signature', { cause: `${HEADER} is wrong; the called URL must begin with ${baseUrl}` })
  }
  return { by: HEADER }
}

/** Twilio signs a URL with its port or without, whichever it called, and its own libraries accept both. */
function withAndWithoutPort(url: string): readonly string[] {
  const { protocol, hostname, port, pathname, search } = new URL(url)
  const ports = ['', `:${port || (protocol === 'https:' ? 443 : 80)}`]
  return ports.map((suffix) => `${protocol}//${hostname}${suffix}${pathname}${search}`)
}

/** A field that is sent twice counts once for each of its values, in order. */
export function twilioSignature(authToken: string, url: string, form: URLSearchParams): string {
  const names = [...new Set(form.keys())].toSorted()
  const fields = names.flatMap((name) => [...new Set(form.getAll(name))].toSorted().map((value) => name + value))
  return hmac('sha1', authToken, url, ...fields).toString('base64')
}

export const twilioStream = mediaCodec({
  start: ['start.callSid', 'streamSid'],
  audio: (streamSid, payload) => ({ event: 'media', streamSid, media: { payload } }),
  mark: (streamSid, name) => ({ event: 'mark', streamSid, mark: { name } }),
  played: { event: 'mark', name: 'mark.name' },
  clear: (streamSid) => ({ event: 'clear', streamSid }),
})
