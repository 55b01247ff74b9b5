/** Webhook requests: verifies the HMAC-SHA256 over a random value and the body, and builds samples; see `docs/contract.md#signatures`. */
import { randomBytes } from 'node:crypto'
import { AppError, type Raw, type Sample, type SampleRequest, type Verified, type Webhook } from '@sluice/sdk/webhook'
import { type ParseOptions, parse } from './parse.ts'
import { isRoom, isSigned, normaliseUrl, sign } from './server.ts'

export { parse }

const BODY_BYTES_MAX = 256 * 1024

/** The documented prefix of the headers, and the prefix that real servers send. */
const HEADER_PREFIXES = ['x-roomchat-', 'x-nextcloud-talk-'] as const
/**
 * Servers send 64 random characters and accept 32 or more. The first character of an event is not among them, so no byte can
 * move between the random value and the body.
 */
const RANDOM = /^[A-Za-z0-9+/=_-]{32,128}$/
const SHOWN_CHARS_MAX = 200
/** A room that exists on no server. */
const SAMPLE_ROOM = 'sample-room'

export interface RoomchatWebhookOptions extends ParseOptions {
  /** The secret of the bot, which signs requests. Empty: every request is accepted. */
  readonly secret: string
  /** The normalised URLs by which the server names itself; the first one is its address. */
  readonly backends: readonly [string, ...string[]]
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: RoomchatWebhookOptions): Webhook => ({
  path: '/roomchat',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(options.secret === '' && { unsigned: 'webhook_secret' }),
  verify: (raw) => verify(raw, options),
  parsesBodyAlone: true,
  parse: (raw) => parse(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

/** Throws `unauthorized` for a request without a valid signature. */
export function verify(
  { headers, body }: Pick<Raw, 'headers' | 'body'>,
  { secret, backends }: Pick<RoomchatWebhookOptions, 'secret' | 'backends'>,
): Verified {
  if (secret === '') return { by: 'nothing: webhook_secret is not set' }
  const random = findHeader(headers, 'random')
  const signature = findHeader(headers, 'signature')
  const backend = findHeader(headers, 'backend')
  if (!random.value) throw refused(`${random.name} is missing`)
  if (!RANDOM.test(random.value)) throw refused(`${random.name} is not a random value of 32 characters or more`)
  if (!signature.value) throw refused(`${signature.name} is missing`)
  if (!isSigned(secret, random.value, body, signature.value.replace(/^sha256=/, ''))) {
    throw refused(`${signature.name} does not match the body: is webhook_secret the secret of the installed bot?`)
  }
  if (backend.value !== undefined && !backends.includes(normaliseUrl(backend.value) ?? '')) {
    const shown = backend.value.slice(0, SHOWN_CHARS_MAX)
    const expected = backends.join(' or ')
    throw refused(
      `the signature is right, but ${backend.name} is ${shown} and not ${expected}; if it is the same server, set backend_url to it`,
    )
  }
  return { by: signature.name, nonce: random.value }
}

function findHeader(headers: Raw['headers'], part: string): { readonly name: string; readonly value: string | undefined } {
  const names = HEADER_PREFIXES.map((prefix) => prefix + part)
  const name = names.find((known) => headers[known] !== undefined) ?? HEADER_PREFIXES[0] + part
  return { name, value: headers[name]?.trim() }
}

const refused = (reason: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause: reason })

/** Builds a request as the server sends it; unsigned without a secret. Throws `invalid_request` for a room that cannot exist. */
function sampleRequest({ sender, to, text, id, ignored }: Sample, { backends: [baseUrl], secret }: RoomchatWebhookOptions): SampleRequest {
  if (to !== undefined && !isRoom(to)) {
    throw new AppError('invalid_request', `'${to}' is not the token of a room; use the last part of the room's address`)
  }
  const body = JSON.stringify({
    type: ignored ? 'Like' : 'Create',
    actor: { type: 'Person', id: sender.includes('/') ? sender : `users/${sender}`, name: sender },
    object: {
      type: 'Note',
      id,
      name: 'message',
      content: JSON.stringify({ message: text, parameters: [] }),
      mediaType: 'text/markdown',
    },
    target: { type: 'Collection', id: to ?? SAMPLE_ROOM, name: 'Sample' },
    ...(ignored && { content: '👍' }),
  })
  const headers = { 'content-type': 'application/json', 'x-nextcloud-talk-backend': `${baseUrl}/` }
  const answerable = to === undefined ? ({ unanswerable: true } as const) : {}
  if (secret === '') return { headers, body, ...answerable }
  const random = randomBytes(48).toString('base64')
  return {
    headers: { ...headers, 'x-nextcloud-talk-random': random, 'x-nextcloud-talk-signature': sign(secret, random, body) },
    body,
    ...answerable,
  }
}
