/** Lays out rows as a table of aligned columns that fits the terminal. */

const GAP = '  '
/** The least width of a column that is narrowed to fit. */
const COLUMN_MIN = 10
/** Characters that take two columns of a terminal. */
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u

/** Returns the number of terminal columns of a text. */
const displayWidth = (text: string): number => {
  let width = 0
  for (const character of text) width += WIDE.test(character) ? 2 : 1
  return width
}

const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - displayWidth(text)))

/** Returns each row as one string; a row with wrapped cells has several lines. Without a width, no cell is wrapped. */
export function formatTable(rows: readonly (readonly string[])[], terminalWidth: number | undefined): string[] {
  const widths = fittingWidths(columnWidths(rows), terminalWidth)
  return rows.map((row) => {
    const cells = widths.map((width, column) => wrapped(row[column] ?? '', width))
    const height = Math.max(1, ...cells.map((lines) => lines.length))
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((lines, column) => padded(lines[line] ?? '', widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    ).join('\n')
  })
}

function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const count = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: count }, (_, column) => Math.max(0, ...rows.map((row) => displayWidth(row[column] ?? ''))))
}

/** Narrows the widest columns until the table fits or every column has its least width. */
function fittingWidths(widths: readonly number[], terminalWidth = Number.POSITIVE_INFINITY): number[] {
  const fitting = [...widths]
  const room = terminalWidth - GAP.length * (fitting.length - 1)
  let total = fitting.reduce((sum, width) => sum + width, 0)
  while (total > room) {
    const widest = Math.max(...fitting)
    if (widest <= COLUMN_MIN) break
    fitting[fitting.indexOf(widest)] = widest - 1
    total -= 1
  }
  return fitting
}

/** Wraps a cell between words where possible, otherwise within a word. */
function wrapped(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  const flush = () => {
    lines.push(line.trimEnd())
    line = ''
  }
  for (const word of text.split(/(?<= )/)) {
    if (line !== '' && displayWidth(line + word.trimEnd()) > width) flush()
    for (const character of word) {
      if (displayWidth(line + character.trimEnd()) > width) flush()
      line += character
    }
  }
  if (line !== '') flush()
  return lines
}
