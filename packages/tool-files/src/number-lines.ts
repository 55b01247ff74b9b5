/** Text as numbered lines, with a last line that says what part of the whole it is. */

/** `offset` counts from 1. A line break at the very end begins no further line. */
export function numberLines(text: string, { offset, limit }: { readonly offset: number; readonly limit: number }): string {
  if (text === '') return '[The file is empty]'
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  const total = lines.length
  const shown = lines.slice(offset - 1, offset - 1 + limit)
  if (shown.length === 0) return `[No lines in range, file has ${total} lines]`
  const numbered = shown.map((line, at) => `${offset + at}: ${line}`)
  const footer = shown.length === total ? `[${total} lines total]` : `[Lines ${offset}-${offset + shown.length - 1} of ${total}]`
  return [...numbered, footer].join('\n')
}
