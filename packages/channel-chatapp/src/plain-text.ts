/** Structured messages as the few words a person would say them in. Empty for one that says nothing. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

export function locationText({ name, address, latitude, longitude }: Members): string {
  const place = joined(text(name), text(address))
  const at = joined(scalar(latitude), scalar(longitude))
  if (place === '' && at === '') return ''
  return `Location: ${place === '' ? at : at === '' ? place : `${place} (${at})`}`
}

export const contactsText = (contacts: unknown): string =>
  list(contacts)
    .map((contact) => {
      const { name, phones, emails } = members(contact)
      const numbers = list(phones).map((phone) => text(members(phone).phone))
      const addresses = list(emails).map((email) => text(members(email).email))
      return joined(text(members(name).formatted_name), ...numbers, ...addresses)
    })
    .filter((contact) => contact !== '')
    .map((contact) => `Contact: ${contact}`)
    .join('\n')

export function orderText({ product_items, text: note }: Members): string {
  const items = list(product_items).map((item) => {
    const { product_retailer_id, quantity, item_price, currency } = members(item)
    return `${scalar(quantity) || '1'} × ${scalar(product_retailer_id)} at ${scalar(item_price)} ${text(currency)}`.trim()
  })
  if (items.length === 0) return ''
  return `Order: ${items.join(', ')}${text(note) === '' ? '' : `\n${text(note)}`}`
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(', ')

const scalar = (value: unknown): string => (typeof value === 'number' ? String(value) : text(value))
