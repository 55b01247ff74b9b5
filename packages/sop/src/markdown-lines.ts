/** The lines of a Markdown text, with those of fenced code blocks told apart: nothing in them means anything. */

export interface MdProblem {
  /** From 1; absent when it is about the whole file. */
  readonly line?: number
  readonly column?: number
  readonly message: string
}

export interface MarkdownLine {
  /** From 1. */
  readonly number: number
  readonly text: string
  /** In a code block, or one of its fences. */
  readonly isCode: boolean
}

const FENCE = /^\s*(?<fence>`{3,}|~{3,})(?<info>.*)$/s

/** A block that does not end would swallow the rest of the file, so it is a problem. */
export function readLines(text: string, problems: MdProblem[]): MarkdownLine[] {
  let open: { readonly fence: string; readonly line: number } | undefined
  const lines = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .map((line, index): MarkdownLine => {
      const number = index + 1
      const { fence, info = '' } = FENCE.exec(line)?.groups ?? {}
      const wasOpen = open !== undefined
      if (open && fence?.startsWith(open.fence) && info.trim() === '') open = undefined
      else if (!open && fence && !(fence.startsWith('`') && info.includes('`'))) open = { fence, line: number }
      return { number, text: line, isCode: wasOpen || open !== undefined }
    })
  if (open) problems.push({ line: open.line, column: 1, message: 'this code block does not end' })
  return lines
}
