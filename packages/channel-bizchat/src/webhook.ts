/**
 * Webhook requests: verifies the shared secret, answers the platform's check of the URL and builds samples. The platform signs
 * nothing, so requests bring a secret in the URL, or in a header that a proxy adds; see `docs/contract.md#signatures`.
 */
import { normaliseNumber } from '@sluice/kit/phone-numbers'
import { AppError, equalTexts, type Raw, type Sample, type SampleRequest, type Verified } from '@sluice/sdk'
import { recipientOf } from './send.ts'

const CHALLENGE = 'hub.challenge'

/** Accepts the secret as the only `?token=` or as a bearer token. Throws `unauthorized` otherwise. */
export function verifyToken({ url, headers }: Raw, secret: string): Verified {
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
export function sampleRequest({ id, sender, text, atMs, ignored }: Sample, secret: string): SampleRequest {
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
