/** Changes to a text by its lines, whichever line ends it has. */

/** Replaces the units from `start` to before `end`. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

export const applyEdit = (text: string, { start, end, text: inserted }: Edit): string => text.slice(0, start) + inserted + text.slice(end)
export const insertion = (at: number, text: string): Edit => ({ start: at, end: at, text })

/** The line end of the text: its first one. */
export const newLine = (text: string): string => /\r?\n/.exec(text)?.[0] ?? '\n'
export const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1)
export const nextLine = (text: string, at: number): number => text.indexOf('\n', at) + 1 || text.length

/** Where the next line is that is not blank. */
export const afterBlank = (text: string, at: number): number => at + (/^(?:[ \t]*\r?\n)*/.exec(text.slice(at))?.[0].length ?? 0)

/** Before the line's end. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  if (end < 0) return text.length
  return text[end - 1] === '\r' ? end - 1 : end
}
