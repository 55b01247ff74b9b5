/** Telephone numbers of allowlists: every usual spelling of a number as E.164, and entries that no sender can match. */
import type { Refined } from '@sluice/sdk'

/**
 * The number as `+` and digits: `0044 20 7946 0958`, `+44 (0)20 7946 0958`, `+44 20 7946 0958 ext. 12` and numbers in
 * full-width or Arabic digits are one. Without `+` or `00` it has to begin with its country code. Undefined for a number
 * that cannot exist, such as one without a country code.
 */
export async function parsePhoneNumber(text: string): Promise<string | undefined> {
  const [{ parsePhoneNumberFromString }, { default: metadata }] = await Promise.all([
    import('libphonenumber-js/core'),
    import('libphonenumber-js/metadata.min.json'),
  ])
  const parse = (number: string) => parsePhoneNumberFromString(number, { extract: false }, metadata)
  const written = text.normalize('NFKC').trim()
  const international = written.startsWith('+') ? written : `+${written.replace(/^00/, '')}`
  const number = parse(international)?.number
  return number && parse(sharedMobile(number))?.isPossible() ? sharedMobile(number) : undefined
}

export interface NumberEntries {
  /** The key the list stands under. */
  readonly key: string
  /** True for an entry other than a number by which the platform knows senders. */
  isId(entry: string): boolean
  /** What an entry may be besides a number, for the message to the operator. */
  readonly ids: string
}

/** An allowlist with each number as E.164, and a problem for each entry that no sender can match. */
export async function refineNumbers(entries: readonly string[], { key, isId, ids }: NumberEntries): Promise<Refined<readonly string[]>> {
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

/**
 * One form for the spellings that WhatsApp and the numbering plans of three countries have for the same mobile number.
 * Brazil added a 9 that WhatsApp's ids of older accounts lack, Mexico dropped the 1 that these ids still have, and in
 * Argentina the 9 after the country code is dialled from abroad only. Any other text is returned unchanged.
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
