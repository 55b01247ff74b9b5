/** A push to what it says (§4.2): that something happened in a mailbox, never a message itself. */

import { withoutTrailing } from '@sluice/kit'
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { historyIdSchema } from './history-id.ts'

export interface PushNotice {
  readonly mailbox: string
  /** The newest change of the mailbox when the push was made. */
  readonly historyId: bigint
}

export interface Push {
  /** The provider's id of this push. */
  readonly id: string | undefined
  /** Absent if it has no data, or data of another kind. */
  readonly notice?: PushNotice
}

/** In either alphabet, padded or not. */
const base64 = v.pipe(
  v.string(),
  v.check((text) => /^[\w+/-]*={0,2}$/.test(text) && withoutTrailing(text, '=').length % 4 !== 1),
)
const envelopeSchema = v.object({
  message: v.pipe(
    // A message may consist of attributes alone.
    v.object({ data: v.optional(base64, ''), messageId: v.optional(v.string()), message_id: v.optional(v.string()) }),
    v.check((message) => message.data !== '' || (message.messageId ?? message.message_id) !== undefined),
  ),
})
const noticeSchema = v.object({ emailAddress: v.pipe(v.string(), v.minLength(1)), historyId: historyIdSchema })

/** Throws `invalid_request` for what is no push. */
export function parsePush(body: Uint8Array): Push {
  const envelope = v.safeParse(envelopeSchema, parsedOrUndefined(body))
  if (!envelope.success) throw new AppError('invalid_request', 'Invalid Pub/Sub envelope')
  const { data, messageId, message_id } = envelope.output.message
  const notice = v.safeParse(noticeSchema, parsedOrUndefined(Buffer.from(data, 'base64')))
  const id = messageId ?? message_id
  if (!notice.success) return { id }
  return { id, notice: { mailbox: notice.output.emailAddress.toLowerCase(), historyId: notice.output.historyId } }
}
