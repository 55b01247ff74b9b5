/** Edits of a text by lines, with either kind of line end. */

/** Replaces the UTF-16 units from `start` up to `end`. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

export const applyEdit = (text: string, { start, end, text: inserted }: Edit): string => text.slice(0, start) + inserted + text.slice(end)
export const insertion = (at: number, text: string): Edit => ({ start: at, end: at, text })

/** Returns the line end that the text uses, which is its first one. */
export const newLine = (text: string): string => /\r?\n/.exec(text)?.[0] ?? '\n'
export const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1)
export const nextLine = (text: string, at: number): number => text.indexOf('\n', at) + 1 || text.length

/** Returns the start of the next line that is not blank. */
export const afterBlank = (text: string, at: number): number => at + (/^(?:[ \t]*\r?\n)*/.exec(text.slice(at))?.[0].length ?? 0)

/** Returns the offset before the line end. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  if (end < 0) return text.length
  return text[end - 1] === '\r' ? end - 1 : end
}
