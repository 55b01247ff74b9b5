/** Who writes and where an answer goes: numbers, business-scoped ids of users who hide theirs, and groups. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import { sharedMobile } from '@sluice/kit/phone-numbers'
import { type Address, normaliseE164 } from '@sluice/sdk'

const WRITTEN_NUMBER = /^[\d\s+().-]*$/
const PLAIN_NUMBER = /^\+?\d+$/
const GROUP = 'group:'
/** A business-scoped user id: the country of its user, a dot, and characters without a meaning for us. */
const USER_ID = /^[A-Za-z]{2}\.[\w.-]+$/

/** True for the id by which a user who shows no number is known. */
export const isUserId = (sender: string): boolean => USER_ID.test(sender)

/** Numbers as E.164 with `+`, ids as they are: none may pass for the number in it. */
export function normaliseSender(sender: string): string {
  const trimmed = sender.trim()
  return WRITTEN_NUMBER.test(trimmed) ? normaliseE164(trimmed) : trimmed
}

/** The form in which a sender is looked up in the allowlist. */
export const allowedForm = (sender: string): string => sharedMobile(normaliseSender(sender))

/** The number a message came from, or the id of a user who shows none; empty if it names neither. */
export function senderOf({ from, from_user_id }: Members): string {
  const number = text(from)
  if (PLAIN_NUMBER.test(number)) return number.startsWith('+') ? number : `+${number}`
  return text(from_user_id)
}

/** Where an answer to a message goes: to its group if it was written in one, else to its sender. */
export function addressOf(message: Members, { id, sender }: { readonly id: string; readonly sender: string }): Address {
  const group = text(message.group_id) || text(members(message.context).group_id)
  return { to: group === '' ? sender : `${GROUP}${group}`, replyTo: id }
}

/** An address in the words of the cloud API, which wants numbers without `+`. */
export function recipientOf(to: string): Readonly<Record<string, string>> {
  if (to.startsWith(GROUP)) return { recipient_type: 'group', to: to.slice(GROUP.length) }
  if (PLAIN_NUMBER.test(to)) return { recipient_type: 'individual', to: to.replace('+', '') }
  return { recipient_type: 'individual', recipient: to }
}
