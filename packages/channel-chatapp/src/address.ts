/** Senders and recipients: numbers, business-scoped ids of users who hide their number, and groups. */
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Address } from '@sluice/sdk/webhook'

const PLAIN_NUMBER = /^\+?\d+$/
const GROUP_PREFIX = 'group:'

/** Returns the number a message came from, else the id of its user; empty if it names neither. */
export function senderOf({ from, from_user_id }: Members): string {
  const number = text(from)
  if (PLAIN_NUMBER.test(number)) return number.startsWith('+') ? number : `+${number}`
  return text(from_user_id)
}

/** Returns where to reply to a message: its group, or its sender outside groups. */
export function addressOf(message: Members, { id, sender }: { readonly id: string; readonly sender: string }): Address {
  const group = text(message.group_id) || text(members(message.context).group_id)
  return { to: group === '' ? sender : `${GROUP_PREFIX}${group}`, replyTo: id }
}

export const isGroup = (to: string): boolean => to.startsWith(GROUP_PREFIX)

/** Returns an address as members of the cloud API, which expects numbers without `+`. */
export function recipientOf(to: string): Readonly<Record<string, string>> {
  if (isGroup(to)) return { recipient_type: 'group', to: to.slice(GROUP_PREFIX.length) }
  if (PLAIN_NUMBER.test(to)) return { recipient_type: 'individual', to: to.replace('+', '') }
  return { recipient_type: 'individual', recipient: to }
}
