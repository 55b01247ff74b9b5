/** Joins the pieces of text that the PDF library finds on a page, by their positions. */

/** The members of pdf.js's `TextItem` that are read here. */
export interface TextPiece {
  readonly str: string
  /** The font's matrix on the page: four numbers for size and direction, then the x and y of the start of the baseline. */
  readonly transform: readonly number[]
  /** The length along the baseline, in units of the page. */
  readonly width: number
  /** Whether the library detected the end of a line after this piece. */
  readonly hasEOL: boolean
}

/** In font sizes: a smaller gap separates two letters of a word. */
const SPACE_EM = 0.15
/** In font sizes: a piece at least this far above or below is on another line. Superscripts and subscripts are closer. */
const LINE_EM = 0.6
/** The same for a piece that begins further to the left, like the first piece of the next line. */
const NEXT_LINE_EM = 0.2

/** Joins pieces that touch, and separates the others by a space or a line break according to their distance. */
export function joinItems(pieces: readonly TextPiece[]): string {
  let text = ''
  let before: TextPiece | undefined
  for (const piece of pieces) {
    if (piece.str !== '') {
      if (before && !/\s$/.test(text) && !/^\s/.test(piece.str)) text += separator(before, piece)
      text += piece.str
      before = piece
    }
    if (piece.hasEOL) text += '\n'
  }
  return text
}

function separator(before: TextPiece, after: TextPiece): '' | ' ' | '\n' {
  const [a = 0, b = 0, c = 0, d = 0, x = 0, y = 0] = before.transform
  const [afterA = 0, afterB = 0, afterC = 0, afterD = 0, afterX = 0, afterY = 0] = after.transform
  const scale = Math.hypot(a, b)
  const size = Math.max(Math.hypot(c, d), Math.hypot(afterC, afterD))
  if (scale === 0 || size === 0) return ''
  const [cos, sin] = [a / scale, b / scale]
  // Text in another direction, such as a rotated label of a table, is a line of its own.
  if (Math.abs(cos * afterB - sin * afterA) > 0.1 * Math.hypot(afterA, afterB)) return '\n'
  const [dx, dy] = [afterX - x, afterY - y]
  const along = dx * cos + dy * sin
  const across = Math.abs(dy * cos - dx * sin)
  // The gap is positive in both writing directions, whichever of the two pieces comes first on the line.
  const gap = Math.max(along - before.width, -along - after.width)
  if (across > LINE_EM * size || (across > NEXT_LINE_EM * size && along < 0 && gap > size)) return '\n'
  return gap > SPACE_EM * size ? ' ' : ''
}
