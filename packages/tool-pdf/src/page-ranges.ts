/** Parses the page ranges that callers write, such as `1-3,7,20-`. */
import { AppError } from '@sluice/sdk'
import type { PageRange } from './pdf-job.ts'

export const PAGES_CHARS_MAX = 200

/** Throws `invalid_request` for a malformed list. Does not check that the document has these pages. */
export function parsePageRanges(pages: string): PageRange[] {
  if (pages.length > PAGES_CHARS_MAX) throw new AppError('invalid_request', `pages is longer than ${PAGES_CHARS_MAX} characters`)
  return pages.split(',').map(parseRange)
}

function parseRange(text: string): PageRange {
  const parts = /^(\d{1,9})\s*(?:(-)\s*(\d{1,9})?)?$/.exec(text.trim())
  if (!parts) throw new AppError('invalid_request', `'${text.trim()}' is not a page or range of pages such as 7, 1-3 or 20-`)
  const [, from, dash, to] = parts
  const first = Number(from)
  const last = to === undefined ? (dash ? Number.POSITIVE_INFINITY : first) : Number(to)
  if (first === 0) throw new AppError('invalid_request', 'Page numbers start at 1')
  if (last < first) throw new AppError('invalid_request', `The range ${text.trim()} ends before it begins`)
  return { first, last }
}
