/** Sends replies to the configured URL, signed in the same way as messages. */
import { callProvider } from '@sluice/kit'
import { members, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Attachment, type Clock, type Outbound, type Secret, type Sent, signProof } from '@sluice/sdk'
import { schemeOf } from './signature.ts'

export interface Receiver {
  readonly fetch: typeof fetch
  readonly clock: Clock
  readonly url: string
  readonly method: 'POST' | 'PUT'
  /** The value of the Authorization header. */
  readonly authorization: Secret | undefined
  /** Empty: replies are not signed. */
  readonly secret: string
}

/**
 * Implements `Channel.send`. `webhook-id` and `Idempotency-Key` are the same for each attempt, so a receiver can drop repeats. The id of
 * the sent message is the `id` of the answer, or else that of the request.
 */
export async function sendMessage(receiver: Receiver, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const { fetch, clock, url, method, authorization, secret } = receiver
  const { clientId: id } = message
  const body = JSON.stringify({
    id,
    recipient: to.to,
    thread_id: to.thread,
    in_reply_to: to.replyTo,
    content: message.text,
    ...(message.attachments?.length && { attachments: message.attachments.map(encoded) }),
  })
  const proof = secret === '' ? {} : signProof(schemeOf(secret), secret, { url, body, id, atMs: clock.nowMs() }).headers
  const { json } = await callProvider({
    fetch,
    provider: 'webhook',
    url,
    method,
    headers: {
      'content-type': 'application/json',
      'idempotency-key': id,
      'webhook-id': id,
      ...proof,
      ...(authorization && { authorization: authorization.reveal() }),
    },
    body,
    signal,
    explain,
  })
  return { id: textOf(members(json).id) || id }
}

function encoded({ kind, name, mime, source }: Attachment) {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  return { kind, name, mime, data: Buffer.from(source.bytes).toString('base64') }
}

const explain = (json: unknown): string | undefined => textOf(members(json).error) || textOf(members(json).message) || undefined
