/** Formats text as numbered lines, followed by a line that says which part of the text is shown. */

export interface LineRange {
  /** The first line, counted from 1. */
  readonly offset: number
  /** The largest number of lines. */
  readonly limit: number
}

/** Numbers the lines of a range. A line break at the end of the text does not start another line. */
export function numberLines(text: string, range: LineRange): string {
  if (text === '') return '[The file is empty]'
  const { offset } = range
  const total = linesOf(text).length
  const shown = selectLines(text, range)
  if (shown.length === 0) return `[No lines in range, file has ${total} lines]`
  const numbered = shown.map((line, index) => `${offset + index}: ${line}`)
  const footer = shown.length === total ? `[${total} lines total]` : `[Lines ${offset}-${offset + shown.length - 1} of ${total}]`
  return [...numbered, footer].join('\n')
}

/** Returns the lines of a range, without numbers. */
export const selectLines = (text: string, { offset, limit }: LineRange): string[] => linesOf(text).slice(offset - 1, offset - 1 + limit)

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}
