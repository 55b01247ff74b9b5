/** Checks the keywords that approve and reject, and finds the decision that a text makes with them. */
import { AppError, type Approval, type ApprovalRequest } from '@sluice/sdk'

export type Keywords = Pick<Approval, 'approveKeywords' | 'rejectKeywords'>

/** The decision that a text makes. */
export interface Verdict {
  readonly approved: boolean
  /** The text after the keyword. */
  readonly feedback: string | null
}

export const APPROVE_KEYWORDS: readonly string[] = Object.freeze(['approve', 'approved', 'yes', 'lgtm'])
export const REJECT_KEYWORDS: readonly string[] = Object.freeze(['reject', 'rejected', 'no'])
/** The most keywords in each list. */
export const KEYWORDS_MAX = 16
export const KEYWORD_CHARS_MAX = 64
/** Longer feedback is cut. */
export const FEEDBACK_CHARS_MAX = 4000

/** Checks the keywords of a question; a list that is absent or empty gets the defaults. Throws `invalid_request`. */
export function keywordsOf({ approveKeywords, rejectKeywords }: Pick<ApprovalRequest, keyof Keywords>): Keywords {
  const approve = listOf(approveKeywords, APPROVE_KEYWORDS, 'approve_keywords')
  const reject = listOf(rejectKeywords, REJECT_KEYWORDS, 'reject_keywords')
  const both = approve.find((keyword) => reject.includes(keyword))
  if (both !== undefined) throw new AppError('invalid_request', `'${both}' is in approve_keywords and in reject_keywords`)
  const keywords = { approveKeywords: approve, rejectKeywords: reject }
  // Keywords that approve are tried first, so a sender of this keyword would approve but mean to reject.
  const shadowed = reject.find((keyword) => verdictOf(keyword, keywords)?.approved)
  if (shadowed !== undefined)
    throw new AppError('invalid_request', `'${shadowed}' of reject_keywords would approve: it begins with one of approve_keywords`)
  return keywords
}

function listOf(given: readonly string[] | undefined, fallback: readonly string[], name: string): readonly string[] {
  if (!given || given.length === 0) return fallback
  if (given.length > KEYWORDS_MAX) throw new AppError('invalid_request', `${name} has more than ${KEYWORDS_MAX} keywords`)
  const keywords = [...new Set(given.map((keyword) => oneForm(keyword).toLowerCase()))]
  if (keywords.some((keyword) => !isKeyword(keyword)))
    throw new AppError(
      'invalid_request',
      `${name} has a keyword that is not 1 to ${KEYWORD_CHARS_MAX} printable characters without a backtick`,
    )
  return keywords
}

/** Normalises a text, because devices encode the same letter as one character or as two. */
const oneForm = (text: string): string => text.trim().normalize('NFC')

const isKeyword = (keyword: string): boolean =>
  keyword.length > 0 && keyword.length <= KEYWORD_CHARS_MAX && /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}`]+$/u.test(keyword)

/** The marks that phones and people put behind a word that stands alone. A question mark asks. */
const END_MARKS = /^[.!。！]{1,3}$/

/**
 * Returns the decision of a text that is a keyword, also with a full stop or an exclamation mark, or a keyword, white space and feedback;
 * undefined for any other text. Case does not matter, and keywords that approve are tried first.
 */
export function verdictOf(text: string, { approveKeywords, rejectKeywords }: Keywords): Verdict | undefined {
  const said = oneForm(text)
  for (const keyword of approveKeywords) {
    const rest = feedbackAfter(said, keyword)
    if (rest !== undefined) return { approved: true, feedback: rest }
  }
  for (const keyword of rejectKeywords) {
    const rest = feedbackAfter(said, keyword)
    if (rest !== undefined) return { approved: false, feedback: rest }
  }
  return undefined
}

/** Returns the feedback after the keyword, null without feedback; undefined if the text does not begin with the keyword. */
function feedbackAfter(said: string, keyword: string): string | null | undefined {
  const head = said.slice(0, keyword.length)
  if (head.toLowerCase() !== keyword) return undefined
  const rest = said.slice(keyword.length)
  if (rest === '' || END_MARKS.test(rest)) return null
  return /^\s/.test(rest) ? boundedFeedback(rest) : undefined
}

export const boundedFeedback = (text: string): string | null => text.trim().slice(0, FEEDBACK_CHARS_MAX).toWellFormed() || null
