/** What the daemon and its PDF worker say to each other: one job, one answer. */

/** First and last page, both included, counted from 1; `last` may be Infinity. */
export interface PageRange {
  readonly first: number
  readonly last: number
}

export interface PdfJob {
  /** Transferred, not copied. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** None: every page. */
  readonly ranges: readonly PageRange[]
  /** Reading ends with the page that exceeds it. Each page but the first counts `PAGE_MARK_CHARS` beside its text. */
  readonly charsMax: number
}

export interface PageText {
  readonly page: number
  /** Trimmed at its end, well-formed, without control characters but line breaks and tabs. */
  readonly text: string
  /** Why a page has no text; absent where it has some, and on images and empty pages. */
  readonly problem?: PageProblem
}

/** `broken`: the page cannot be read. `unmapped`: it draws text in fonts that do not say which characters they draw. */
export type PageProblem = 'broken' | 'unmapped'

export interface PdfText {
  /** Of the whole document. */
  readonly pages: number
  /** As many of the pages asked for as were read, in order; the last one may be cut. */
  readonly texts: readonly PageText[]
  /** There is more text, or there are more pages asked for, than `charsMax` had room for. */
  readonly truncated: boolean
}

export interface Refusal {
  /** One sentence for whoever asked. */
  readonly refusal: string
  /** What the library said, for the log. */
  readonly cause?: string
}

export type PdfAnswer = PdfText | Refusal

/** The most characters that the two lines take which name a page and say why it has no text. */
export const PAGE_MARK_CHARS = 40
