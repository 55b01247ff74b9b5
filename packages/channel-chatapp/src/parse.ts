/** Parses the messages in a webhook request, and the reports of failed ones. Ignores other reports, echoes and other events. */
import { list, type Members, members, parseJson, text } from '@sluice/kit/foreign-json'
import { type DeliveryReport, type Inbound, namePart, normaliseE164, type Raw } from '@sluice/sdk/webhook'
import { addressOf, isGroup, senderOf } from './address.ts'
import { pressedIn } from './buttons.ts'
import { contentOf } from './content.ts'

/** The largest time value of a JavaScript `Date`. */
const MS_MAX = 8_640_000_000_000_000

/** Throws `invalid_request` for a body that is not JSON. `account` is the id of our number; messages to another number are ignored. */
export function parse({ body }: Pick<Raw, 'body'>, { account }: { readonly account: string }): Inbound[] {
  return valuesIn(body, account).flatMap((value) => messagesIn(value, account))
}

/**
 * Returns the reports of messages that the platform took and could not deliver. Source:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/status
 */
export const reportsIn = ({ body }: Pick<Raw, 'body'>, { account }: { readonly account: string }): DeliveryReport[] =>
  valuesIn(body, account)
    .flatMap(({ statuses }) => list(statuses).map(members))
    .flatMap(({ status, id, errors }) => (status === 'failed' && text(id) !== '' ? [{ message: text(id), error: reasonOf(errors) }] : []))

/** Returns the code and the words of the first error. */
function reasonOf(errors: unknown): string {
  const { code, title, message, error_data } = members(list(errors)[0])
  const words = [...new Set([text(title), text(message), text(members(error_data).details)])].filter((part) => part !== '')
  const said = words.join(': ') || 'no reason given'
  return typeof code === 'number' ? `${said} (code ${code})` : said
}

/** Returns the changes for our number. */
function valuesIn(body: Uint8Array, account: string): Members[] {
  const changes = list(members(parseJson(body)).entry).flatMap((entry) => list(members(entry).changes).map(members))
  const values = changes.flatMap(({ field, value }) => (field === 'messages' ? [members(value)] : []))
  return values.filter(({ metadata }) => (text(members(metadata).phone_number_id) || account) === account)
}

function messagesIn({ metadata, messages, contacts }: Members, account: string): Inbound[] {
  const ownNumber = normaliseE164(text(members(metadata).display_phone_number))
  return list(messages)
    .map((item) => parseMessage(members(item), { account, ownNumber, contacts: list(contacts) }))
    .filter((message) => message !== undefined)
    .filter(({ sender }) => sender !== ownNumber)
}

interface Surroundings {
  readonly account: string
  readonly ownNumber: string
  readonly contacts: readonly unknown[]
}

/** Returns undefined for a message without content, and for one without an id or a sender, which cannot be deduplicated or answered. */
function parseMessage(message: Members, { account, ownNumber, contacts }: Surroundings): Inbound | undefined {
  const id = text(message.id)
  const sender = senderOf(message)
  const content: (Partial<Inbound> & Pick<Inbound, 'text'>) | undefined = pressedIn(message) ?? changeIn(message) ?? contentOf(message)
  if (id === '' || sender === '' || !content) return undefined
  const sentAtMs = Number(text(message.timestamp)) * 1000
  const to = addressOf(message, { id, sender })
  return {
    id,
    account,
    sender,
    ...namePart(nameIn(contacts, message)),
    to,
    ...(!content.pressed && { addressed: isGroup(to.to) ? addressedInGroup(message, ownNumber) : 'direct' }),
    ...content,
    ...(sentAtMs > 0 && sentAtMs <= MS_MAX && Number.isInteger(sentAtMs) && { sentAtMs }),
  }
}

/** The platform marks no mentions. */
const addressedInGroup = ({ context }: Members, ownNumber: string): 'reply' | 'overheard' =>
  ownNumber !== '' && normaliseE164(text(members(context).from)) === ownNumber ? 'reply' : 'overheard'

/** The profile of a sender is a member next to the messages of the request. A sender who hides the number has only a user id. */
function nameIn(contacts: readonly unknown[], { from, from_user_id }: Members): string {
  const isSender = ({ wa_id, user_id }: Members): boolean => (text(from) === '' ? user_id === from_user_id : wa_id === from)
  return text(members(contacts.map(members).find(isSender)?.profile).name)
}

/**
 * Returns the edit or the deletion of an earlier message. The platform reports them for numbers that are used with the WhatsApp Business
 * app, too. Source: https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/edit and
 * .../revoke
 */
function changeIn({ type, edit, revoke }: Members): Omit<Inbound, 'id' | 'account' | 'sender' | 'to'> | undefined {
  const [edited, deleted] = [members(edit), text(members(revoke).original_message_id)]
  if (type === 'revoke' && deleted !== '') return { text: '', changes: { message: deleted, what: 'deleted' } }
  const original = text(edited.original_message_id)
  const content = type === 'edit' && original !== '' ? contentOf(members(edited.message)) : undefined
  if (!content) return undefined
  // The context of an edit names the message itself.
  const { inReplyTo: _, ...rest } = content
  return { ...rest, changes: { message: original, what: 'edited' } }
}
