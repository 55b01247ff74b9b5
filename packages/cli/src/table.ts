/** Lays out rows as a table of aligned columns that fits the terminal, or as one block for each row where they cannot. */

const GAP = '  '
/** The least width of a column of sentences. */
const COLUMN_MIN = 10
/** Characters that take two columns of a terminal. */
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** The lengths at which a UUID may be cut: after each of its groups. */
const UUID_CUTS = [8, 13, 18, 23]
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z$/

type Rows = readonly (readonly string[])[]

/** Returns the number of terminal columns of a text. */
const displayWidth = (text: string): number => {
  let width = 0
  for (const character of text) width += WIDE.test(character) ? 2 : 1
  return width
}

const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - displayWidth(text)))

/**
 * Returns each row as one string, which may have several lines. The first row has the headings; it is empty where the others need none.
 * Without a width, no cell is changed. In a terminal that is too narrow, times lose their milliseconds, and UUIDs all but a prefix that is
 * unique in the table, which commands take in their place. A cell without spaces is never broken, so that it can be copied: if the columns
 * still do not fit, each row becomes a block of lines.
 */
export function formatTable(rows: Rows, terminalWidth: number | undefined): string[] {
  if (terminalWidth === undefined || fits(columnWidths(rows), terminalWidth)) return aligned(rows, columnWidths(rows))
  const short = shortened(rows)
  const widths = fittingWidths(columnWidths(short), leastWidths(short), terminalWidth)
  return fits(widths, terminalWidth) ? aligned(short, widths) : blocks(rows)
}

const fits = (widths: readonly number[], terminalWidth: number): boolean =>
  widths.reduce((sum, width) => sum + width, 0) + GAP.length * (widths.length - 1) <= terminalWidth

function aligned(rows: Rows, widths: readonly number[]): string[] {
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

/** Returns an empty first row, and a block for each other row, with a line for each cell that is not empty. */
function blocks([headings = [], ...rows]: Rows): string[] {
  const width = Math.max(0, ...headings.map(displayWidth))
  const texts = rows.map((row) =>
    headings.flatMap((heading, column) => (row[column] ? [`${padded(heading, width)}${GAP}${row[column]}`] : [])).join('\n'),
  )
  return ['', ...texts.map((text, index) => (index < texts.length - 1 ? `${text}\n` : text))]
}

const columnCount = (rows: Rows): number => Math.max(0, ...rows.map((row) => row.length))

const columnWidths = (rows: Rows): number[] =>
  Array.from({ length: columnCount(rows) }, (_, column) => Math.max(0, ...rows.map((row) => displayWidth(row[column] ?? ''))))

/** Returns the width below which a column may not be narrowed: that of its longest cell, if no cell has a space. */
function leastWidths(rows: Rows): number[] {
  return columnWidths(rows).map((width, column) => {
    const isProse = rows.slice(1).some((row) => row[column]?.includes(' '))
    return isProse ? Math.min(width, COLUMN_MIN) : width
  })
}

function shortened([headings = [], ...rows]: Rows): Rows {
  const columns = Array.from({ length: columnCount([headings, ...rows]) }, (_, column) =>
    shortenedColumn(rows.map((row) => (row[column] ?? '').replace(TIME, '$1 $2Z'))),
  )
  return [headings, ...rows.map((_, row) => columns.map((column) => column[row] ?? ''))]
}

/** Cuts the UUIDs of a column to the shortest prefix by which they differ. */
function shortenedColumn(cells: readonly string[]): readonly string[] {
  const ids = new Set(cells.filter((cell) => UUID.test(cell)))
  const cut = UUID_CUTS.find((length) => new Set([...ids].map((id) => id.slice(0, length))).size === ids.size)
  return cut === undefined ? cells : cells.map((cell) => (UUID.test(cell) ? cell.slice(0, cut) : cell))
}

/** Narrows the widest columns until the table fits or every column has its least width. */
function fittingWidths(widths: readonly number[], least: readonly number[], terminalWidth: number): number[] {
  const fitting = [...widths]
  while (!fits(fitting, terminalWidth)) {
    const spare = fitting.map((width, column) => (width > (least[column] ?? 0) ? width : 0))
    const widest = Math.max(...spare)
    if (widest === 0) break
    fitting[spare.indexOf(widest)] = widest - 1
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
