/** Describes the context of a message, a line each: the tapped button, the product, the advertisement that led its sender here. */
import { type Members, members, text } from '@sluice/kit/foreign-json'

const CHARS_MAX = 500

/** Leaves out a value that only repeats `said`, the text of the message. */
export function contextText(message: Members, said: string): string[] {
  const { button_reply, list_reply } = members(message.interactive)
  const row = members(list_reply)
  return [
    line('Button', said, text(members(message.button).payload), text(members(button_reply).id)),
    line('List row', said, text(row.id), text(row.description)),
    productText(members(members(message.context).referred_product)),
    referralText(members(message.referral)),
  ].filter((found) => found !== '')
}

/** https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/text */
function productText({ catalog_id, product_retailer_id }: Members): string {
  const product = text(product_retailer_id)
  const catalogue = text(catalog_id)
  return line('Product', '', product, product !== '' && catalogue !== '' ? `catalogue ${catalogue}` : '')
}

/** The platform sends a referral with the first message after a user tapped an advertisement or a post. */
const referralText = ({ source_type, headline, body, source_url }: Members): string =>
  line(text(source_type) === 'post' ? 'From the post' : 'From the advertisement', '', text(headline), text(body), text(source_url))

const line = (label: string, said: string, ...parts: readonly string[]): string => {
  const told = parts.map((part) => part.replace(/\s+/g, ' ').trim()).filter((part) => part !== '' && part !== said.trim())
  return told.length === 0 ? '' : `${label}: ${told.join(', ').slice(0, CHARS_MAX)}`
}
