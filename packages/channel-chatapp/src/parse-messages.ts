/** Bytes of a request to the messages in it; states of sent messages, echoes and whatever else is dropped. */

import { list, type Members, members, parseJson, text } from '@sluice/kit/foreign-json'
import { type Inbound, normaliseE164 } from '@sluice/sdk'
import { contentOf } from './content-of.ts'
import { addressOf, senderOf } from './sender.ts'

/** The last moment a date can name. */
const MS_MAX = 8_640_000_000_000_000

/** Throws `invalid_request` for what is no JSON. `ours` is the id of our number: what came to another is not for us. */
export function parseMessages(body: Uint8Array, ours: string): Inbound[] {
  const found: Inbound[] = []
  for (const entry of list(members(parseJson(body)).entry)) {
    for (const change of list(members(entry).changes)) {
      const { field, value } = members(change)
      if (field === 'messages') readChange(members(value), ours, found)
    }
  }
  return found
}

function readChange({ metadata, messages }: Members, ours: string, found: Inbound[]): void {
  const { phone_number_id, display_phone_number } = members(metadata)
  if ((text(phone_number_id) || ours) !== ours) return
  const ourNumber = normaliseE164(text(display_phone_number))
  for (const item of list(messages)) {
    const message = readMessage(members(item), ours)
    if (message && message.sender !== ourNumber) found.push(message)
  }
}

/** Undefined for what says nothing, and for what names no id or no sender: it could be neither run once nor answered. */
function readMessage(message: Members, account: string): Inbound | undefined {
  const id = text(message.id)
  const sender = senderOf(message)
  const content = contentOf(message)
  if (id === '' || sender === '' || !content) return undefined
  const sentAtMs = Number(text(message.timestamp)) * 1000
  return {
    id,
    account,
    sender,
    to: addressOf(message, { id, sender }),
    ...content,
    ...(sentAtMs > 0 && sentAtMs <= MS_MAX && Number.isInteger(sentAtMs) && { sentAtMs }),
  }
}
