/** Fetches a mail in two steps: the header and the structure, and then the parts with the text. Attachments stay on the server. */
import { parseHeaders } from './headers.ts'
import type { Fetched, Imap } from './imap.ts'
import { bytesOf, textOf } from './imap-values.ts'
import { type FetchedMail, judge, type MailPolicy } from './parse.ts'
import { NO_PARTS, parseStructure, textParts } from './structure.ts'

const HEADER_BYTES_MAX = 262_144
const TEXT_BYTES_MAX = 524_288
const TEXT_PARTS_MAX = 10
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * Returns the mail, or why it is ignored; undefined if it was deleted. Throws `ImapRefusal`, `UnreadableResponse`, or the reason why the
 * connection broke.
 */
export async function fetchMail(
  imap: Imap,
  { uidValidity, uid }: { readonly uidValidity: string; readonly uid: number },
  policy: MailPolicy,
): Promise<FetchedMail | { readonly ignored: string } | undefined> {
  const found = await fetchHeader(imap, { uidValidity, uid }, policy, 'BODYSTRUCTURE')
  if (!found || 'ignored' in found) return found
  const { first, ...mail } = found
  const structure = parseStructure(first.get('BODYSTRUCTURE'))
  const parts = textParts(structure).slice(0, TEXT_PARTS_MAX)
  const items = parts.map(({ number }) => `BODY.PEEK[${number}]<0.${TEXT_BYTES_MAX}>`).join(' ')
  const second = items === '' ? first : await imap.fetch(uid, items)
  if (!second) return undefined
  return { ...mail, structure, texts: parts.map((part) => ({ part, bytes: bodyIn(second, part.number) ?? Buffer.alloc(0) })) }
}

/** Returns a mail without its text and its files, of which the server does not return more. See `fetchMail`. */
export async function fetchHeaderOnly(
  imap: Imap,
  mail: { readonly uidValidity: string; readonly uid: number },
  policy: MailPolicy,
): Promise<FetchedMail | { readonly ignored: string } | undefined> {
  const found = await fetchHeader(imap, mail, policy)
  if (!found || 'ignored' in found) return found
  const { first: _, ...rest } = found
  return { ...rest, structure: NO_PARTS, texts: [], lacksText: true }
}

async function fetchHeader(
  imap: Imap,
  { uidValidity, uid }: { readonly uidValidity: string; readonly uid: number },
  policy: MailPolicy,
  ...items: readonly string[]
): Promise<(Omit<FetchedMail, 'structure' | 'texts'> & { readonly first: Fetched }) | { readonly ignored: string } | undefined> {
  const first = await imap.fetch(uid, ['INTERNALDATE', ...items, `BODY.PEEK[HEADER]<0.${HEADER_BYTES_MAX}>`].join(' '))
  const header = first && bodyIn(first, 'HEADER')
  if (!header) return undefined
  if (header.length >= HEADER_BYTES_MAX) return { ignored: 'its header is too long' }
  const headers = parseHeaders(header)
  const verdict = judge(headers, policy)
  if ('ignored' in verdict) return verdict
  return { uidValidity, uid, header, headers, receivedAtMs: parseDate(textOf(first.get('INTERNALDATE'))) ?? 0, first }
}

/** Servers name a part of which they send the beginning with or without its offset. */
export function bodyIn(fetched: Fetched, section: string): Buffer | undefined {
  const value = fetched.get(`BODY[${section}]<0>`) ?? fetched.get(`BODY[${section}]`)
  return value === undefined || value === null ? undefined : bytesOf(value)
}

/** Parses a time such as ` 7-Feb-2026 22:43:04 +0100`. */
function parseDate(text: string): number | undefined {
  const found = /^\s?(\d{1,2})-([a-z]{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/i.exec(text)
  if (!found) return undefined
  const [, day, month = '', year, hours, minutes, seconds, sign, zoneHours, zoneMinutes] = found
  const zoneMs = (sign === '-' ? -1 : 1) * (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000
  return Date.UTC(Number(year), MONTHS.indexOf(month.toLowerCase()), Number(day), Number(hours), Number(minutes), Number(seconds)) - zoneMs
}

/** Writes a day for SEARCH, such as `7-Feb-2026`. */
export function searchDay(ms: number): string {
  const date = new Date(ms)
  const month = MONTHS[date.getUTCMonth()] ?? ''
  return `${date.getUTCDate()}-${month.charAt(0).toUpperCase()}${month.slice(1)}-${date.getUTCFullYear()}`
}
