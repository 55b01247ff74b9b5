/** Senders: telephone numbers, and the ids of those who show none. */
import { normaliseE164 } from '@sluice/sdk'

/**
 * Numbers as `+` and digits, anything else as it is: an id such as `US.15550002222` must not pass for the number in it.
 */
export function normaliseSender(sender: string): string {
  const text = sender.trim()
  return /^[\d\s+().-]*$/.test(text) ? normaliseE164(text) : text
}

/** A sender as the host API wants it for a recipient. */
export const recipientOf = (sender: string): string => sender.replace(/^\+/, '')
