/** Text as numbered lines, with a last line that says what part of the whole it is. */

export interface LineRange {
  /** From 1. */
  readonly offset: number
  readonly limit: number
}

/** A line break at the very end begins no further line. */
export function numberLines(text: string, range: LineRange): string {
  if (text === '') return '[The file is empty]'
  const { offset } = range
  const total = linesOf(text).length
  const shown = linesOf(text, range)
  if (shown.length === 0) return `[No lines in range, file has ${total} lines]`
  const numbered = shown.map((line, at) => `${offset + at}: ${line}`)
  const footer = shown.length === total ? `[${total} lines total]` : `[Lines ${offset}-${offset + shown.length - 1} of ${total}]`
  return [...numbered, footer].join('\n')
}

/** Without the numbers; without a range, all. */
export function linesOf(text: string, range?: LineRange): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return range ? lines.slice(range.offset - 1, range.offset - 1 + range.limit) : lines
}
