/** An event of the provider as the message in it (§4.2), under whichever of its names a field comes. */

import { parseObject, textAt, valueAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Inbound, type Raw } from '@sluice/sdk'
import { attachmentOf } from './attachment.ts'
import { idAt } from './id-at.ts'
import { normaliseSender, recipientOf } from './sender.ts'
import { timeAt } from './time.ts'

/** The second one comes for people who show no number; of those who do, both may come, with one message id. */
const MESSAGE_EVENTS = ['message', 'message_bsuid']

/**
 * Throws `invalid_request` for a message without id or sender, which could be neither told apart nor answered. `account` is
 * for events that do not say which of our numbers they came to.
 */
export function parseMessages({ body }: Raw, account: string): Inbound[] {
  const event = parseObject(body)
  const type = textAt(event, 'type') || 'text'
  // old payloads name no event
  const isMessage = event.eventType === undefined || MESSAGE_EVENTS.some((name) => name === event.eventType)
  if (!isMessage || isOwn(event) || type === 'reaction') return []
  const content = contentOf(event, type)
  if (!content) return []
  const id = idAt(event, 'whatsappMessageId', 'id')
  const sender = normaliseSender(idAt(event, 'waId', 'wa_id', 'from', 'bsuid'))
  if (id === '' || sender === '') throw new AppError('invalid_request', 'The message has no id or no sender')
  const sentAtMs = timeAt(event, 'timestamp', 'created')
  return [
    {
      id,
      account: idAt(event, 'channelPhoneNumber') || account,
      sender,
      to: { to: recipientOf(sender) },
      ...content,
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

/** The provider writes a boolean; tools between it and us, such as form builders, write it as a text. */
const isOwn = (event: unknown): boolean =>
  ['owner', 'fromMe', 'from_me'].some((key) => /^true$/i.test(String(valueAt(event, key) ?? '').trim()))

/** Where the words of a message are: in itself, or in the button or the row of a list that its sender tapped. */
const TEXT_PATHS = [
  ...['text', 'message.text', 'message.body'],
  ...['buttonReply', 'interactiveButtonReply', 'listReply'].flatMap((reply) => [`${reply}.title`, `${reply}.text`]),
]

/** Undefined for a message with nothing in it to answer. */
function contentOf(event: unknown, type: string): { text: string; attachments?: Attachment[] } | undefined {
  const text = textAt(event, ...TEXT_PATHS)
  const attachment = attachmentOf(event, type, text)
  if (attachment) return { text: attachment.name === text.trim() ? '' : text, attachments: [attachment] }
  return text === '' ? undefined : { text }
}
