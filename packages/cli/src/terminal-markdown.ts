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

/** Divides a text that arrives in pieces into blocks. Reads each line once, so that the time for a long block is linear. */
export class BlockReader {
  /** The complete lines of the block that is not complete, and the line behind them. */
  #lines = ''
  #line = ''
  #lastWords = ''
  #isBelowBlank = false
  /** The marks of the code block that is open. */
  #fence: string | undefined

  /** The last line with words of the block that is not complete. */
  get lastLine(): string {
    return this.#line.trim() === '' ? this.#lastWords : this.#line
  }

  /** Adds a piece. Returns the blocks that are complete now, as one text; empty for none. */
  push(piece: string): string {
    const [first = '', ...others] = piece.split('\n')
    let blocks = this.#add(first)
    for (const other of others) {
      this.#endLine()
      blocks += this.#add(other)
    }
    return blocks
  }

  /** Returns the rest, and forgets it: the next piece begins another text. */
  end(): string {
    const rest = this.#lines + this.#line
    this.#lines = ''
    this.#line = ''
    this.#lastWords = ''
    this.#isBelowBlank = false
    this.#fence = undefined
    return rest
  }

  /** Adds words to the line. Returns the block that no later line can belong to: a line with a space at its start belongs to the one before it. */
  #add(words: string): string {
    this.#line += words
    if (!this.#isBelowBlank || !/^\S/.test(this.#line)) return ''
    const block = this.#lines
    this.#lines = ''
    this.#isBelowBlank = false
    return block
  }

  #endLine(): void {
    const [line, marks] = [this.#line.trim(), FENCE.exec(this.#line)?.[1]]
    this.#isBelowBlank = this.#fence === undefined && line === ''
    if (this.#fence === undefined) this.#fence = marks
    else if (marks?.startsWith(this.#fence) && line === marks) this.#fence = undefined
    if (line !== '') this.#lastWords = line
    this.#lines += `${this.#line}\n`
    this.#line = ''
  }
}
