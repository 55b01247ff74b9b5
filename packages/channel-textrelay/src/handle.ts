/** Handles: how a person is known here, by telephone number or by mail address. */
import { normaliseE164 } from '@sluice/sdk'

/**
 * The form all spellings of one handle share: `+` and digits for a number, lower case for anything else. Only what is
 * written as a number becomes one: a sender name such as `A15550001111` must not pass for the number in it.
 */
export function normaliseHandle(handle: string): string {
  const text = handle.trim().toLowerCase()
  return /^[\d\s+().-]*$/.test(text) ? normaliseE164(text) : text
}

/** True for a handle in its normal form, in a place where the id of a chat may stand as well. */
export const isHandle = (text: string): boolean => text.startsWith('+') || text.includes('@')

/** True for a mail address, the name of a business, and a short code, all of which are handles without a country code. */
export const isOtherHandle = (handle: string): boolean =>
  /@/.test(handle) || /^(?=.*[a-z])[a-z\d ]{2,11}$/i.test(handle) || /^\d{3,6}$/.test(handle)
