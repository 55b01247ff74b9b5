/** The messages between the daemon and its PDF worker: one job, one answer. */

/** The first and last page, both included, counted from 1. `last` may be Infinity. */
export interface PageRange {
  readonly first: number
  readonly last: number
}

export interface PdfJob {
  /** Transferred to the worker, not copied. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** An empty list selects every page. */
  readonly ranges: readonly PageRange[]
  /** Reading ends with the page that exceeds this number. Each page after the first counts `PAGE_MARK_CHARS` in addition to its text. */
  readonly charsMax: number
}

export interface PageText {
  readonly page: number
  /** Well-formed, without trailing white space, and without control characters other than line breaks and tabs. */
  readonly text: string
  /** The reason for an empty text. Absent when the page has text, is empty or consists of images. */
  readonly problem?: PageProblem
}

/** `broken`: the page cannot be read. `unmapped`: its fonts do not map the glyphs they draw to characters. */
export type PageProblem = 'broken' | 'unmapped'

export interface PdfText {
  /** The number of pages of the whole document. */
  readonly pages: number
  /** The requested pages in order, up to the first that exceeded `charsMax`, which is cut. */
  readonly texts: readonly PageText[]
  /** True when `charsMax` cut a page or left requested pages out. */
  readonly truncated: boolean
}

export interface Refusal {
  /** A sentence for the caller. */
  readonly refusal: string
  /** The library's error, for the log. */
  readonly cause?: string
}

export type PdfAnswer = PdfText | Refusal

/** The maximum length of the two lines that name a page and say why it has no text. */
export const PAGE_MARK_CHARS = 40
