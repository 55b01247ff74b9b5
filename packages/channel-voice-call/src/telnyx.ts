/**
 * Telnyx: the signature and the events of its requests (developers.telnyx.com/api/webhooks, Call Control), and the messages of its
 * media streams (developers.telnyx.com/docs/voice/programmable-voice/media-streaming).
 */
import { parsedOrUndefined, parseObject, textAt, valueAt } from '@sluice/kit/foreign-json'
import { AppError, equalTexts, isFresh, type Raw, type Verified } from '@sluice/sdk/webhook'
import { mediaCodec } from './media-codec.ts'
import type { CallEvent, Parties, RequestOptions, Requests } from './telephony.ts'

const HEADER = 'telnyx-signature-ed25519'
const TIMESTAMP = 'telnyx-timestamp'
const WINDOW_SECS = 300
/** The head of an Ed25519 public key in the form that Node reads (RFC 8410), before its 32 bytes. */
const KEY_HEAD = '302a300506032b6570032100'
const KEY_BYTES = 32

export const telnyxRequests: Requests = { verify, event }

/** Throws `unauthorized` unless the request carries the account's signature of the time and the raw bytes, at most 300 s old. */
function verify({ headers, body, receivedAtMs }: Raw, { publicKey = '' }: RequestOptions): Verified {
  const [given, time] = [HEADER, TIMESTAMP].map((name) => headers[name]?.trim() ?? '')
  const refuse = (cause: string): never => {
    throw new AppError('unauthorized', 'Invalid signature', { cause })
  }
  if (!given || !time) return refuse(`${HEADER} or ${TIMESTAMP} is missing`)
  if (!/^\d{1,12}$/.test(time) || !isFresh(Number(time), receivedAtMs, WINDOW_SECS)) return refuse(`${TIMESTAMP} is not within 300 s`)
  const signature = Buffer.from(given, 'base64')
  // Each signature has one accepted form: the decoder ignores foreign characters and unused bits.
  if (!equalTexts(signature.toString('base64'), given)) return refuse(`${HEADER} is not base64`)
  if (!isSigned(publicKey, signedBytes(time, body), signature)) return refuse(`${HEADER} is wrong`)
  return { by: HEADER }
}

const signedBytes = (time: string, body: Uint8Array): Buffer => Buffer.from(`${time}|${Buffer.from(body).toString('latin1')}`, 'latin1')

function isSigned(publicKey: string, bytes: Uint8Array, signature: Uint8Array): boolean {
  const { createPublicKey, verify } = process.getBuiltinModule('node:crypto')
  const key = Buffer.from(publicKey, 'base64')
  if (key.length !== KEY_BYTES) return false
  return verify(
    null,
    bytes,
    createPublicKey({ key: Buffer.from(KEY_HEAD + key.toString('hex'), 'hex'), format: 'der', type: 'spki' }),
    signature,
  )
}

function event({ body }: Pick<Raw, 'body'>): CallEvent {
  const json = parseObject(body)
  const payload = valueAt(json, 'data.payload')
  const call = textAt(payload, 'call_control_id')
  const type = textAt(json, 'data.event_type')
  if (!type.startsWith('call.') || call === '') return { kind: 'other' }
  const parties = partiesOf(payload, call)
  if (!parties) return { kind: 'other' }
  switch (type) {
    case 'call.initiated':
      return parties.direction === 'inbound' ? { kind: 'ringing', ...parties } : { kind: 'other' }
    case 'call.answered':
      return { kind: 'started', ...parties, ...tokenIn(payload) }
    case 'call.transcription': {
      const text = textAt(payload, 'transcription_data.transcript').trim()
      const isFinal = valueAt(payload, 'transcription_data.is_final') === true
      const id = textAt(json, 'data.id')
      return text !== '' && isFinal && id !== '' ? { kind: 'heard', id: `${call}/${id}`, text, ...parties } : { kind: 'other' }
    }
    case 'call.hangup':
      return { kind: 'ended', ...parties }
    default:
      return { kind: 'other' }
  }
}

/** Reports of a transcription do not have the numbers of the call, but every event repeats the `client_state` that we gave it. */
function partiesOf(payload: unknown, call: string): Parties | undefined {
  const [from, to] = [textAt(payload, 'from'), textAt(payload, 'to')]
  if (from && to) {
    const isOutbound = textAt(payload, 'direction') === 'outgoing'
    return isOutbound ? { call, remote: to, local: from, direction: 'outbound' } : { call, remote: from, local: to, direction: 'inbound' }
  }
  const state = parsedOrUndefined(Buffer.from(textAt(payload, 'client_state'), 'base64'))
  const [remote, local, direction] = ['remote', 'local', 'direction'].map((name) => textAt(state, name))
  if (!remote || !local || (direction !== 'inbound' && direction !== 'outbound')) return undefined
  return { call, remote, local, direction }
}

function tokenIn(payload: unknown): { readonly token?: string } {
  const token = textAt(parsedOrUndefined(Buffer.from(textAt(payload, 'client_state'), 'base64')), 'token')
  return token === '' ? {} : { token }
}

/** The `client_state` of a call. */
export const telnyxState = ({ remote, local, direction }: Omit<Parties, 'call'>, token?: string): string =>
  Buffer.from(JSON.stringify({ remote, local, direction, ...(token !== undefined && { token }) })).toString('base64')

export const telnyxStream = mediaCodec({
  start: ['start.call_control_id', 'stream_id'],
  audio: (_stream, payload) => ({ event: 'media', media: { payload } }),
  mark: (_stream, name) => ({ event: 'mark', mark: { name } }),
  played: { event: 'mark', name: 'mark.name' },
  clear: () => ({ event: 'clear' }),
})
