/** Telephone numbers as senders and as entries of allowlists. */
import type { Refined } from '@sluice/sdk'
import { normaliseE164 } from '@sluice/sdk/webhook'

/**
 * Returns a number as `+` and digits. Accepts the usual spellings, such as `0044 20 7946 0958`, `+44 (0)20 7946 0958`,
 * `+44 20 7946 0958 ext. 12`, and full-width or Arabic digits. A number without `+` or `00` must start with its country code.
 * Returns undefined for a number that cannot exist, such as one without a country code.
 */
export async function parsePhoneNumber(text: string): Promise<string | undefined> {
  const { metadata, parsePhoneNumberFromString } = await import('./phone-library.ts')
  const parse = (number: string) => parsePhoneNumberFromString(number, { extract: false }, metadata)
  const written = text.normalize('NFKC').trim()
  const international = written.startsWith('+') ? written : `+${written.replace(/^00/, '')}`
  const number = parse(international)?.number
  return number && parse(sharedMobile(number))?.isPossible() ? sharedMobile(number) : undefined
}

/**
 * Returns a sender that is written as a number as `+` and digits, and any other sender trimmed. An id with digits in it, such
 * as `US.15550002222` or `A15550001111`, does not become the number.
 */
export function normaliseNumber(sender: string): string {
  const text = sender.trim()
  return /^[\d\s+().-]*$/.test(text) ? normaliseE164(text) : text
}

/** Returns the form in which an allowlist compares a WhatsApp sender: `normaliseNumber`, with one form for each mobile number. */
export const allowlistForm = (sender: string): string => sharedMobile(normaliseNumber(sender))

/**
 * Returns one form for the spellings that WhatsApp and the numbering plans of three countries have for the same mobile number.
 * Brazil added a 9 that the WhatsApp ids of older accounts don't have, Mexico removed the 1 that these ids still have, and
 * Argentina's 9 after the country code is dialled only from abroad. Returns any other text unchanged.
 */
export function sharedMobile(e164: string): string {
  const brazil = /^\+55(\d\d)([6-9]\d{7})$/.exec(e164)
  if (brazil) return `+55${brazil[1]}9${brazil[2]}`
  const mexico = /^\+521(\d{10})$/.exec(e164)
  if (mexico) return `+52${mexico[1]}`
  const argentina = /^\+54([1-3]\d{9})$/.exec(e164)
  if (argentina) return `+549${argentina[1]}`
  return e164
}

/** Returns whether a sender is the id of a WhatsApp user who hides the number: the user's country, a dot and more characters. */
export const isHiddenNumberId = (sender: string): boolean => /^[A-Za-z]{2}\.[\w.-]+$/.test(sender)

/** Refines a section for WhatsApp: its `allowed_numbers` may contain numbers and ids of users who hide their number. */
export async function refineAllowedNumbers<Section extends { readonly allowed_numbers: readonly string[] }>(
  section: Section,
): Promise<Refined<Section>> {
  const { value, problems } = await refineNumbers(section.allowed_numbers, {
    key: 'allowed_numbers',
    isId: isHiddenNumberId,
    ids: 'the id of a user who hides the number, such as US.90000000000001',
  })
  return { problems, value: { ...section, allowed_numbers: value } }
}

export interface NumberEntries {
  /** The configuration key of the list. */
  readonly key: string
  /** Returns whether an entry that is not a number can match a sender of the platform. */
  isId(entry: string): boolean
  /** Completes the error text: the entries that are accepted besides numbers. */
  readonly ids: string
}

/** Returns an allowlist with its numbers as E.164, and a problem for each entry that no sender can match. */
export async function refineNumbers(entries: readonly string[], { key, isId, ids }: NumberEntries): Promise<Refined<string[]>> {
  const value: string[] = []
  const problems: Refined<unknown>['problems'][number][] = []
  for (const [index, entry] of entries.entries()) {
    const number = entry === '*' || isId(entry.trim()) ? entry.trim() : await parsePhoneNumber(entry)
    value.push(number ?? entry)
    if (number === undefined) problems.push({ path: [key, index], message: neverMatches(entry, ids) })
  }
  return { value, problems }
}

const neverMatches = (entry: string, ids: string): string =>
  `${JSON.stringify(entry.slice(0, 40))} can never match a sender; write a telephone number with its country code, such as +442079460958, ${ids}, or *`
