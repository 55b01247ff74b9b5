/** Cuts a long result of a tool once, before it is stored. Whole lines remain from its beginning and its end. */
import { shorten } from '../history/shorten.ts'
import { estimateTokens } from '../history/tokens.ts'

/** The tool that reads files. A turn that may not call it attaches no file to its answer. */
export const READER = 'file_read'

export interface ResultLimit {
  readonly tokens: number
  /** `max_tool_result_chars`, which replaces the limit of tokens. */
  readonly chars?: number | undefined
}

export interface CutResult {
  readonly output: string
  /** The number of the first line, from 1, that is not shown. Absent for a whole result. */
  readonly nextLine?: number
}

const LINES_MAX = 2000
/** The part of a cut result that comes from its beginning. */
const HEAD_SHARE = 2 / 3

/** The limit in a window of this size: a quarter of a small one, 8,000 tokens of 32,000, and 16,000 of 200,000 or more. */
export const resultTokens = (window: number): number =>
  Math.floor(window <= 32_000 ? window / 4 : Math.min(16_000, 8000 + (window - 32_000) / 21))

/** `isRead` is true for numbered lines of a file, of which the beginning remains. */
export function cutResult(text: string, { tokens, chars }: ResultLimit, isRead: boolean): CutResult {
  if (chars !== undefined) {
    if (text.length <= chars) return { output: text }
    return { output: shorten(text, chars), nextLine: text.slice(0, Math.ceil(chars * HEAD_SHARE)).split('\n').length }
  }
  const lines = text.split('\n')
  if (lines.length <= LINES_MAX && estimateTokens(text) <= tokens) return { output: text }
  const share = isRead ? 1 : HEAD_SHARE
  const shown = lines.map((line) => (estimateTokens(line) > tokens * HEAD_SHARE ? described(line, isRead) : line))
  const head = countThatFit(shown, { tokens: tokens * share, lines: LINES_MAX * share })
  const tail = isRead ? 0 : countThatFit(shown.slice(head).reverse(), { tokens: tokens * (1 - share), lines: LINES_MAX * (1 - share) })
  const left = lines.length - head - tail
  const firstLong = lines.findIndex((line, at) => shown[at] !== line)
  const nextLine = firstLong >= 0 && firstLong < head ? firstLong + 1 : head + 1
  if (left === 0) return { output: shown.join('\n'), nextLine }
  const gap = `[… ${left.toLocaleString('en-US')} lines left out …]`
  return { output: [...shown.slice(0, head), gap, ...shown.slice(lines.length - tail)].join('\n'), nextLine }
}

function described(line: string, isRead: boolean): string {
  const number = isRead ? (/^\d+: /.exec(line)?.[0] ?? '') : ''
  return `${number}[a line of ${line.length.toLocaleString('en-US')} characters, which is too long to be shown]`
}

function countThatFit(lines: readonly string[], limit: { readonly tokens: number; readonly lines: number }): number {
  let tokens = 0
  for (const [at, line] of lines.entries()) {
    tokens += estimateTokens(line) + 1
    if (tokens > limit.tokens || at >= Math.floor(limit.lines)) return at
  }
  return lines.length
}
