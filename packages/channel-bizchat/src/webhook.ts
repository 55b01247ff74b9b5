/**
 * Webhook requests: verifies the shared secret, answers the platform's check of the URL and builds samples. The platform signs
 * nothing, so requests bring a secret in the URL, or in a header that a proxy adds; see `docs/contract.md#signatures`.
 */
import { normaliseNumber } from '@sluice/kit/phone-numbers'
import { AppError, equalTexts, type Raw, type Sample, type SampleRequest, type Verified, type Webhook } from '@sluice/sdk/webhook'
import { parse, recipientOf } from './parse.ts'

export { parse }

const CHALLENGE = 'hub.challenge'

export interface BizchatWebhookOptions {
  /** The secret that each request must bring. Empty: every request is accepted. */
  readonly secret: string
  /** The account of events that do not name the receiving number. */
  readonly account: string
}

/** The webhook of the platform. It needs no Sluice runtime. */
export const createWebhook = (options: BizchatWebhookOptions): Webhook => ({
  path: '/bizchat',
  ...(options.secret === '' && { unsigned: 'webhook_secret' }),
  handshake: answerHandshake,
  handshakeQuery,
  verify: (raw) => verify(raw, options),
  parsesBodyAlone: true,
  parse: (raw) => parse(raw, options),
  sample: (sample) => sampleRequest(sample, options),
})

/** Accepts the secret as the only `?token=` or as a bearer token. Throws `unauthorized` otherwise. */
export function verify({ url, headers }: Pick<Raw, 'url' | 'headers'>, { secret }: Pick<BizchatWebhookOptions, 'secret'>): Verified {
  if (secret === '') return { by: 'nothing: webhook_secret is not set' }
  const tokens = url.searchParams.getAll('token')
  const bearer = /^bearer +([^ ].*)$/is.exec(headers.authorization?.trim() ?? '')?.[1]
  if (tokens.length === 1 && tokens.every((token) => equalTexts(token, secret))) return { by: 'token in the URL' }
  if (bearer !== undefined && equalTexts(bearer, secret)) return { by: 'authorization' }
  const isMissing = tokens.length === 0 && bearer === undefined
  throw new AppError('unauthorized', 'Invalid signature', { cause: isMissing ? 'neither ?token= nor a bearer' : 'the token is wrong' })
}

/** Answers the platform's check of the URL with its challenge. The platform documents no token for this check. */
export function answerHandshake(url: URL): Response {
  const challenge = url.searchParams.get(CHALLENGE)
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  return challenge ? new Response(challenge, { headers }) : new Response(`Missing ${CHALLENGE}`, { status: 400, headers })
}

/** Returns the query of the platform's check of the URL. */
export const handshakeQuery = (challenge: string): Readonly<Record<string, string>> => ({ [CHALLENGE]: challenge })

/** Builds a request as the platform sends it, with the secret, if there is one, in the URL. */
function sampleRequest({ id, sender, text, atMs, ignored }: Sample, { secret }: BizchatWebhookOptions): SampleRequest {
  const body = {
    id,
    created: new Date(atMs).toISOString(),
    whatsappMessageId: id,
    conversationId: 'sample-conversation',
    ticketId: 'sample-ticket',
    text,
    type: 'text',
    data: null,
    timestamp: String(Math.floor(atMs / 1000)),
    owner: ignored === true,
    eventType: ignored ? 'sessionMessageSent' : 'message',
    statusString: 'SENT',
    waId: recipientOf(normaliseNumber(sender)),
    senderName: 'Sample',
  }
  const headers = { 'content-type': 'application/json' }
  return { headers, ...(secret === '' ? {} : { query: { token: secret } }), body: JSON.stringify(body) }
}
