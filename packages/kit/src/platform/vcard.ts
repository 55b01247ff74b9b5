/** Reads the words of a vCard (RFC 6350). */

/** The members of a card that people read, other than the name. */
const SHOWN = ['ORG', 'TITLE', 'TEL', 'EMAIL', 'ADR', 'URL', 'NOTE']
const CARD_CHARS_MAX = 20_000
const VALUES_MAX = 20
const PROPERTY = /^(?:[\w-]{1,30}\.)?([A-Za-z]{1,10})(?:;[^:]{0,200})?:(.*)$/

/** Returns the values of a card without its name, in their order; `without` names members that the caller has already, such as `TEL`. */
export function vcardWords(card: string, without: readonly string[] = []): readonly string[] {
  // A line that begins with a blank continues the line above.
  const lines = card
    .slice(0, CARD_CHARS_MAX)
    .replace(/\r?\n[ \t]/g, '')
    .split(/\r?\n/)
  const values = lines.flatMap((line) => {
    const [, name = '', value = ''] = PROPERTY.exec(line) ?? []
    const key = name.toUpperCase()
    return SHOWN.includes(key) && !without.includes(key) ? [plain(value)] : []
  })
  return values.filter((value) => value !== '').slice(0, VALUES_MAX)
}

/** The parts of an address are apart by semicolons, and commas are escaped. */
const plain = (value: string): string =>
  value
    .replace(/^tel:/i, '')
    .split(/(?<!\\);/)
    .map((part) => part.replace(/\\n/gi, ' ').replace(/\\(.)/g, '$1').trim())
    .filter((part) => part !== '')
    .join(' ')
