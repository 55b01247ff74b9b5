/** Reads the text and the attachments of a message. Describes its context, such as a tapped button, in lines under the text. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import { type Attachment, forwardedPart, type Inbound, location, type Thing, thing, thingsPart, unknownThing } from '@sluice/sdk/webhook'

interface Content {
  readonly text: string
  readonly attachments?: readonly Attachment[]
  readonly things?: readonly Thing[]
}

/** Types that say nothing without words, report something, or answer nothing. */
const IGNORED = ['text', 'reaction', 'system', 'ephemeral', 'request_welcome', '']

const CONTEXT_CHARS_MAX = 500

/** The kinds of attachments, by the type of the message. */
const KINDS = {
  image: 'image',
  sticker: 'image',
  audio: 'audio',
  voice: 'audio',
  video: 'video',
  document: 'file',
} as const satisfies Record<string, Attachment['kind']>

/** Returns undefined for types that need no answer, such as reactions. The words of a forwarded message come from others. */
export function contentOf(message: Members): Pick<Inbound, 'text' | 'attachments' | 'things' | 'forwarded' | 'inReplyTo'> | undefined {
  const content = withContext(message)
  const { id, forwarded, frequently_forwarded } = members(message.context)
  if (!content) return undefined
  if (forwarded === true || frequently_forwarded === true) return { text: '', ...forwardedPart(content) }
  return { ...content, ...(text(id) !== '' && { inReplyTo: text(id) }) }
}

function withContext(message: Members): Content | undefined {
  const content = ownContent(message)
  // Most messages have no context, and no lines are built for them.
  if (!content || !hasContext(message)) return content
  const lines = [content.text, ...contextLines(message, content.text)]
  const things = [...(content.things ?? []), ...referralIn(members(message.referral))]
  return { ...content, text: lines.filter((line) => line !== '').join('\n'), ...thingsPart(things) }
}

/** A message of which the platform shows only the type arrives as a line. */
function ownContent(message: Members): Content | undefined {
  const type = text(message.type)
  const name = type === 'unsupported' ? text(members(message.unsupported).type) : type
  return readContent(type, message) ?? (IGNORED.includes(type) ? undefined : thingContent(unknownThing(name)))
}

function readContent(type: string, message: Members): Content | undefined {
  switch (type) {
    case 'text':
      return textContent(text(members(message.text).body))
    case 'button':
      return textContent(text(members(message.button).text))
    case 'interactive':
      return textContent(pickedTitle(members(message.interactive))) ?? thingContent(...answerIn(members(message.interactive)))
    case 'location':
      return thingContent(...locationIn(members(message.location)))
    case 'contacts':
      return thingContent(...contactsIn(message.contacts))
    case 'order':
      return textContent(orderText(members(message.order)))
    case 'image':
    case 'sticker':
    case 'audio':
    case 'voice':
    case 'video':
    case 'document':
      return mediaContent(type, members(message[type]))
    default:
      return undefined
  }
}

const thingContent = (...things: readonly Thing[]): Content | undefined =>
  things.length === 0 ? undefined : { text: '', ...thingsPart(things) }

const textContent = (body: string): Content | undefined => (body.trim() === '' ? undefined : { text: body })

/** Returns the title of the button or list row that the sender picked. */
const pickedTitle = ({ button_reply, list_reply }: Members): string => text(members(button_reply ?? list_reply).title)

/** The types of answers that are empty without their members. */
const PICKED = ['button_reply', 'list_reply', 'nfm_reply', '']

/** The answers of a form that the person filled in, and an answer of another type, such as the permission to call, as it is. */
function answerIn(interactive: Members): readonly Thing[] {
  const type = text(interactive.type)
  const { body, response_json } = members(interactive.nfm_reply)
  if (text(response_json) !== '') return [thing('form', text(body), text(response_json))]
  return PICKED.includes(type) ? [] : [thing('form', type, JSON.stringify(members(interactive[type])))]
}

function mediaContent(type: keyof typeof KINDS, part: Members): Content | undefined {
  const id = text(part.id)
  if (id === '') return undefined
  const mime = text(part.mime_type)
  const [, format] = /^\w+\/(\w+)/.exec(mime) ?? []
  const kind = attachmentKind(mime)
  const stem = part.voice === true ? 'voice' : type
  const attachment: Attachment = {
    // A sender can send images and recordings as documents.
    kind: kind === 'file' ? KINDS[type] : kind,
    name: text(part.filename) || (format ? `${stem}.${format}` : stem),
    ...(mime && { mime }),
    source: { id },
  }
  return { text: text(part.caption), attachments: [attachment] }
}

function locationIn({ name, address, latitude, longitude }: Members): readonly Thing[] {
  const place = location(latitude, longitude, text(name), text(address))
  return place.text === '' ? [] : [place]
}

const contactsIn = (contacts: unknown): readonly Thing[] =>
  list(contacts).map((contact) => {
    const { name, org, phones, emails, addresses, urls, birthday } = members(contact)
    const { company, department, title } = members(org)
    const values = (of: unknown, ...names: readonly string[]): string[] =>
      list(of).map((each) =>
        names
          .map((member) => text(members(each)[member]))
          .filter((part) => part !== '')
          .join(' '),
      )
    return thing(
      'contact',
      text(members(name).formatted_name),
      ...[text(company), text(department), text(title)],
      ...values(phones, 'phone'),
      ...values(emails, 'email'),
      ...values(addresses, 'street', 'zip', 'city', 'state', 'country'),
      ...values(urls, 'url'),
      text(birthday),
    )
  })

function orderText({ product_items, text: note }: Members): string {
  const items = list(product_items).map((item) => {
    const { product_retailer_id, quantity, item_price, currency } = members(item)
    return `${scalarText(quantity) || '1'} × ${scalarText(product_retailer_id)} at ${scalarText(item_price)} ${text(currency)}`.trim()
  })
  if (items.length === 0) return text(note)
  return `Order: ${items.join(', ')}${text(note) === '' ? '' : `\n${text(note)}`}`
}

const scalarText = (value: unknown): string => (typeof value === 'number' ? String(value) : text(value))

const hasContext = ({ interactive, button, context, referral }: Members): boolean => Boolean(interactive || button || context || referral)

/** Describes the tapped button and the product of a message. Omits values that only repeat `body`, its text. */
function contextLines(message: Members, body: string): string[] {
  const { button_reply, list_reply } = members(message.interactive)
  const row = members(list_reply)
  return [
    contextLine('Button', body, text(members(message.button).payload), text(members(button_reply).id)),
    contextLine('List row', body, text(row.id), text(row.description)),
    productLine(members(members(message.context).referred_product)),
  ]
}

/**
 * Describes the product that a message refers to. Source:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/text
 */
function productLine({ catalog_id, product_retailer_id }: Members): string {
  const product = text(product_retailer_id)
  const catalogue = text(catalog_id)
  return contextLine('Product', '', product, product !== '' && catalogue !== '' ? `catalogue ${catalogue}` : '')
}

/**
 * The platform sends a referral with the first message after a person tapped an advertisement or a post, whose words are not the person's.
 * Source: https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/text
 */
function referralIn({ source_type, headline, body, source_url }: Members): readonly Thing[] {
  const words = [headline, body, source_url].map((part) => text(part).replace(/\s+/g, ' ').trim())
  if (words.every((part) => part === '')) return []
  const source = text(source_type) === 'post' ? 'from a post' : 'from an advertisement'
  return [thing('link', source, ...words.map((part) => part.slice(0, CONTEXT_CHARS_MAX)))]
}

function contextLine(label: string, body: string, ...values: readonly string[]): string {
  const shown = values.map((value) => value.replace(/\s+/g, ' ').trim()).filter((value) => value !== '' && value !== body.trim())
  return shown.length === 0 ? '' : `${label}: ${shown.join(', ').slice(0, CONTEXT_CHARS_MAX)}`
}
