/** Finds the code fences of a text, with any indentation, so that a split leaves none of them open. */

/** A code fence. All positions are offsets into the text. */
export interface CodeFence {
  /** The index where the opening line begins. */
  readonly start: number
  /** The index after the opening line. */
  readonly code: number
  /** The index where the closing line begins; without one, the end of the text. */
  readonly codeEnd: number
  /** The index after the closing marks; without them, past the end of the text. */
  readonly end: number
  /** The opening marks, which also close it. */
  readonly marks: string
  /** The text after the opening marks, such as the language. White space before it stays: it may begin with such marks itself. */
  readonly info: string
}

type Opening = Pick<CodeFence, 'start' | 'code' | 'marks' | 'info'>

/** Returns the fences in order. They do not overlap. */
export function codeFences(text: string): CodeFence[] {
  const marksAt = /[ \t]*(`{3,}|~{3,})/y
  const fences: CodeFence[] = []
  let opening: Opening | undefined
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const lineEnd = newline < 0 ? text.length : newline
    marksAt.lastIndex = start
    const marks = marksAt.exec(text)?.[1]
    if (marks !== undefined) {
      const marksEnd = marksAt.lastIndex
      const info = text.slice(marksEnd, lineEnd).trimEnd()
      if (!opening) {
        const isInline = marks.startsWith('`') && info.includes('`')
        if (!isInline) opening = { start, code: lineEnd + 1, marks, info }
      } else if (info === '' && marks.startsWith(opening.marks)) {
        fences.push({ ...opening, codeEnd: start, end: marksEnd })
        opening = undefined
      }
    }
    start = lineEnd + 1
  }
  if (opening) fences.push({ ...opening, codeEnd: text.length, end: text.length + 1 })
  return fences
}

/** The fence that a break at `at` would cut. */
export function fenceAround<Fence extends CodeFence>(fences: readonly Fence[], at: number): Fence | undefined {
  let low = 0
  for (let high = fences.length; low < high; ) {
    const middle = (low + high) >> 1
    if ((fences[middle]?.start ?? 0) < at) low = middle + 1
    else high = middle
  }
  const last = fences[low - 1]
  return last && at < last.end ? last : undefined
}
