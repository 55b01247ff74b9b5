/** Senders: telephone numbers, and the ids of those who show none. */

import { sharedMobile } from '@sluice/kit/phone-numbers'
import { normaliseE164 } from '@sluice/sdk'

/**
 * Numbers as `+` and digits, anything else as it is: an id such as `US.15550002222` must not pass for the number in it.
 */
export function normaliseSender(sender: string): string {
  const text = sender.trim()
  return /^[\d\s+().-]*$/.test(text) ? normaliseE164(text) : text
}

/** The form in which a sender is looked up in the allowlist. */
export const allowedForm = (sender: string): string => sharedMobile(normaliseSender(sender))

/** True for the id by which a user who shows no number is known: the user's country, a dot, and further characters. */
export const isUserId = (sender: string): boolean => /^[A-Za-z]{2}\.[\w.-]+$/.test(sender)

/** A sender as the host API wants it for a recipient. */
export const recipientOf = (sender: string): string => sender.replace(/^\+/, '')
