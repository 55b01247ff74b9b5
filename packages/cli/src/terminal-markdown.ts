/** Shows the Markdown of an agent at a terminal: the blocks of a text as they become complete, with the styles that terminals have. */
import { renderMarkdown } from '@sluice/kit/markdown'
import type { StyleKind, TextStyle } from '@sluice/sdk'
import type { Output, Style } from './context.ts'

/** A quote is shown in quotation marks, and a link by its words and its address. */
const STYLES: Readonly<Partial<Record<StyleKind, Style>>> = { bold: 'bold', italic: 'italic', strike: 'strike', code: 'cyan', pre: 'cyan' }
const SHOWS = Object.keys(STYLES) as StyleKind[]

const FENCE = /^\s*(`{3,}|~{3,})/

/** Returns the text as people read it. `style` is that of the output, which leaves out colours where a terminal has none. */
export function terminalText(markdown: string, style: Output['style']): string {
  const { text, styles } = renderMarkdown(markdown, { shows: SHOWS })
  const places = new Set([0, text.length, ...styles.flatMap(({ from, to }) => [from, to])])
  const sorted = [...places].sort((a, b) => a - b)
  return sorted
    .slice(1)
    .map((to, at) => {
      const from = sorted[at] ?? 0
      return styled(text.slice(from, to), { styles: styles.filter((one) => one.from <= from && one.to >= to), style })
    })
    .join('')
}

/** A terminal forgets all styles at the end of one, so each piece has its own. */
const styled = (piece: string, { styles, style }: { styles: readonly TextStyle[]; style: Output['style'] }): string =>
  styles.reduce((text, { kind }) => (STYLES[kind] ? style(STYLES[kind], text) : text), piece)

/** Divides a text that arrives in pieces into blocks. */
export class BlockReader {
  #text = ''

  /** The part that is not complete. */
  get rest(): string {
    return this.#text
  }

  /** Adds a piece. Returns the blocks that are complete now, as one text; empty for none. */
  push(piece: string): string {
    const mayEndBlock = piece.includes('\n') || this.#text.endsWith('\n')
    this.#text += piece
    return mayEndBlock ? this.#take(endOfBlocks(this.#text)) : ''
  }

  /** Returns the rest, after which the text begins anew. */
  end(): string {
    return this.#take(this.#text.length)
  }

  #take(end: number): string {
    const taken = this.#text.slice(0, end)
    this.#text = this.#text.slice(end)
    return taken
  }
}

/** Returns the place behind the last block that no later line can belong to. A line with a space at its start belongs to the block before it. */
function endOfBlocks(text: string): number {
  let end = 0
  let blankEnd: number | undefined
  let fence: string | undefined
  for (let from = 0; from < text.length; ) {
    const newline = text.indexOf('\n', from)
    const to = newline < 0 ? text.length : newline + 1
    const line = text.slice(from, to)
    const marks = FENCE.exec(line)?.[1]
    if (fence !== undefined) {
      if (marks?.startsWith(fence) && line.trim() === marks) fence = undefined
    } else if (line.trim() === '') {
      if (newline >= 0) blankEnd = to
    } else {
      if (blankEnd === from && !/^\s/.test(line)) end = from
      fence = marks
    }
    from = to
  }
  return end
}
