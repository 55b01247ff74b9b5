/**
 * Push requests of Google Cloud Pub/Sub: verifies them by a shared secret or a signed token, parses the notice in them and
 * builds samples; see `docs/contract.md#signatures`.
 */
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { withoutTrailing } from '@sluice/kit/without-trailing'
import { AppError, equalTexts, type Raw, type Sample, type SampleRequest, type Webhook } from '@sluice/sdk/webhook'
import * as v from 'valibot'
import { historyIdSchema } from './mail.ts'
import { createPushTokenCheck, type PushTokenOptions } from './push-token.ts'

export interface PushNotice {
  readonly mailbox: string
  /** The newest change of the mailbox when the push was made. */
  readonly historyId: bigint
}

export interface Push {
  /** The platform's id of this push. */
  readonly id: string | undefined
  /** Absent for a push without data, or with data that is not a notice. */
  readonly notice?: PushNotice
}

/** What verifies a push. No Sluice runtime is needed. */
export interface PushOptions {
  /** The secret that each push brings. Empty: only signed tokens are accepted. */
  readonly secret: string
  /** The signed tokens that are accepted; undefined accepts none. Without a secret and tokens, every push is accepted. */
  readonly tokens?: PushTokenOptions | undefined
}

export interface Verification {
  readonly verify: Webhook['verify']
  /** The key to set when pushes are not verified. */
  readonly unsigned?: string
}

/** Base64 in the standard or the URL alphabet, with or without padding. */
const base64 = v.pipe(
  v.string(),
  v.check((text) => /^[\w+/-]*={0,2}$/.test(text) && withoutTrailing(text, '=').length % 4 !== 1),
)
const envelopeSchema = v.object({
  message: v.pipe(
    // A message may have attributes and no data.
    v.object({ data: v.optional(base64, ''), messageId: v.optional(v.string()), message_id: v.optional(v.string()) }),
    v.check((message) => message.data !== '' || (message.messageId ?? message.message_id) !== undefined),
  ),
})
const noticeSchema = v.object({ emailAddress: v.pipe(v.string(), v.minLength(1)), historyId: historyIdSchema })

/** Returns the check of a push: the secret as a bearer token or as the only `?token=`, or a token that the push service signed. */
export function createVerification({ secret, tokens }: PushOptions): Verification {
  const checkToken = tokens && createPushTokenCheck(tokens)
  if (secret === '' && !checkToken) {
    return { unsigned: 'webhook_secret', verify: () => ({ by: 'nothing: webhook_secret is not set' }) }
  }
  const matchesSecret = (given: string) => secret !== '' && equalTexts(given, secret)

  return {
    async verify({ headers, url }) {
      const bearer = bearerIn(headers.authorization ?? '')
      if (bearer !== undefined && matchesSecret(bearer)) return { by: 'the bearer' }
      const tokens = url.searchParams.getAll('token')
      if (tokens.length === 1 && matchesSecret(tokens[0] ?? '')) return { by: '?token=' }
      const problem = bearer !== undefined && checkToken ? await checkToken(bearer) : 'neither bearer nor ?token= is webhook_secret'
      if (problem === undefined) return { by: 'the signed token' }
      throw new AppError('unauthorized', 'Unauthorized', { cause: problem })
    },
  }
}

const bearerIn = (authorization: string): string | undefined => /^bearer +(\S+)$/i.exec(authorization.trim())?.[1]

/** Returns the notice of a push. The mails themselves are fetched. Throws `invalid_request` for a body that is not a push. */
export function parse({ body }: Pick<Raw, 'body'>): Push {
  const envelope = v.safeParse(envelopeSchema, parsedOrUndefined(body))
  if (!envelope.success) throw new AppError('invalid_request', 'Invalid Pub/Sub envelope')
  const { data, messageId, message_id } = envelope.output.message
  const notice = v.safeParse(noticeSchema, parsedOrUndefined(Buffer.from(data, 'base64')))
  const id = messageId ?? message_id
  if (!notice.success) return { id }
  return { id, notice: { mailbox: notice.output.emailAddress.toLowerCase(), historyId: notice.output.historyId } }
}

/**
 * Builds a push with the secret, if there is one. It makes the channel check the mailbox; an ignored sample has data that is
 * not a notice. Without a secret the sample cannot be verified, because only the push service can sign a token.
 */
export function samplePush({ sender, id, atMs, ignored }: Sample, { secret, tokens }: PushOptions): SampleRequest {
  const data = ignored ? { sample: true } : { emailAddress: sender, historyId: atMs }
  return {
    headers: { 'content-type': 'application/json', ...(secret !== '' && { authorization: `Bearer ${secret}` }) },
    body: JSON.stringify({
      message: {
        data: Buffer.from(JSON.stringify(data)).toString('base64'),
        messageId: id,
        publishTime: new Date(atMs).toISOString(),
      },
      subscription: 'projects/sample/subscriptions/sample',
    }),
    ...(secret === '' && tokens && { unverifiable: true }),
  }
}
