/** Handles, by which the platform identifies a person: a telephone number, a mail address, a short code or a business name. */
import { normaliseNumber } from '@sluice/kit/phone-numbers'

/**
 * Returns one form for all spellings of a handle: `+` and digits for a number, lower case for any other handle. A sender
 * name with digits, such as `A15550001111`, does not become the number.
 */
export const normaliseHandle = (handle: string): string => normaliseNumber(handle.toLowerCase())

/** Returns whether a normalised recipient is a handle; the alternative is the id of a chat. */
export const isHandle = (text: string): boolean => text.startsWith('+') || text.includes('@')

/** Returns whether a handle has no country code: a mail address, the name of a business or a short code. */
export const isOtherHandle = (handle: string): boolean =>
  /@/.test(handle) || /^(?=.*[a-z])[a-z\d ]{2,11}$/i.test(handle) || /^\d{3,6}$/.test(handle)
