/** Reads the Markdown of an agent, and lays it out as text with styles. Apart from the other parts because it needs a library. */
import type { Markup, StyledText, StyleKind, TextStyle } from '@sluice/sdk'
import { Hooks, Lexer, type Token, type Tokens } from 'marked'
import { maskEmphasis, ReplyTokenizer } from './emphasis.ts'
import { markTags, type PairedTag, readTags, textToken } from './html-tags.ts'
import { decoded } from './references.ts'
import { inOrder, trimmed } from './styled-text.ts'

/** A longer text, and a longer paragraph of one, is not read, because reading some of them takes quadratic time. */
const CHARS_MAX = 50_000
const PARAGRAPH_CHARS_MAX = 10_000
/** Quotes and lists that are deeper within others are not read. */
const DEPTH_MAX = 12
/** A wider table becomes a list, because it would be wrapped on a phone. */
const TABLE_COLUMNS_MAX = 60
/** A longer address is written out, so that readers see where it leads. */
const ADDRESS_CHARS_MAX = 1000
const SHOWN_ADDRESS = /^(?:https?|mailto|tel):/i
const WEB_ADDRESS = /^(?:https?:\/\/|www\.)/i
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff00-\uff60]/u
const INVISIBLE = /[\p{Mn}\p{Me}\p{Cf}]/u

class ReplyHooks extends Hooks {
  override emStrongMask(masked: string): string {
    return maskEmphasis(masked)
  }
}

class BoundedLexer extends Lexer {
  #depth = 0

  override blockTokens(source: string, tokens: Token[] = [], lastParagraphClipped?: boolean) {
    this.#depth++
    try {
      if (this.#depth > DEPTH_MAX) tokens.push(textToken(source))
      else super.blockTokens(source, tokens as Parameters<Lexer['blockTokens']>[1] & Token[], lastParagraphClipped)
      return tokens as ReturnType<Lexer['blockTokens']>
    } finally {
      this.#depth--
    }
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if (source.length <= PARAGRAPH_CHARS_MAX) return super.inlineTokens(source, tokens)
    tokens.push(textToken(source))
    return tokens
  }
}

/** Whether a paragraph has nothing but tags that are not shown. */
const isEmpty = ({ type, tokens }: Token & { readonly tokens?: Token[] }): boolean =>
  (type === 'paragraph' || type === 'text') && tokens?.some((token) => token.type === 'tag') === true && readTags(tokens).length === 0

/**
 * Returns what a platform shows of a text in CommonMark with tables and strikethrough. A line of the text stays a line. Tags of HTML
 * that mark words are read as these marks; other HTML is text. A text that shows nothing stays as it is.
 */
export function renderMarkdown(source: string, markup: Pick<Markup, 'shows' | 'spoken'>): StyledText {
  const plain = { text: source, styles: [] }
  if (source.length > CHARS_MAX) return plain
  const layout = new Layout(markup)
  const tokens = new BoundedLexer({ gfm: true, tokenizer: new ReplyTokenizer(), hooks: new ReplyHooks() }).lex(source)
  markTags(tokens)
  layout.blocks(tokens, '\n\n')
  const { text, styles } = layout
  return text.trim() === ''
    ? plain
    : {
        text: text.trimEnd(),
        styles: inOrder(
          styles.flatMap((style) => trimmed(text.trimEnd(), { ...style, to: Math.min(style.to, text.trimEnd().length) }) ?? []),
        ),
      }
}

class Layout {
  text = ''
  styles: TextStyle[] = []
  readonly #markup: Pick<Markup, 'shows' | 'spoken'>
  /** The indentation of lines within the item of a list. */
  #indent = ''
  #depth = 0
  readonly #open = new Set<StyleKind>()
  /** Whether the text ends with a line break. Looking at the text itself would copy it each time. */
  #isLineStart = false
  /** Whether the text ends with a block that stands among words. */
  #isBlockEnd = false

  constructor(markup: Pick<Markup, 'shows' | 'spoken'>) {
    this.#markup = markup
  }

  /** Adds blocks with a separator between them. */
  blocks(tokens: readonly Token[], separator: string): void {
    let isFirst = true
    for (const token of tokens) {
      if (token.type === 'space' || token.type === 'def' || token.type === 'checkbox' || isEmpty(token)) continue
      if (!isFirst) this.#write(separator)
      isFirst = false
      this.#block(token as Tokens.Generic)
    }
  }

  #block(token: Tokens.Generic): void {
    const { type, tokens = [], text = '', raw } = token
    if (type === 'heading') this.#styled('bold', () => this.#inline(tokens))
    else if (type === 'code') this.#code(text, (token as Tokens.Code).lang)
    else if (type === 'blockquote') this.#quote(tokens)
    else if (type === 'list') this.#list(token as Tokens.List)
    else if (type === 'table') this.#table(token as Tokens.Table)
    else if (type === 'hr') this.#write(this.#markup.spoken ? '' : '———')
    else if (tokens.length > 0) this.#inline(tokens)
    else this.#write(decoded(text || raw))
  }

  #code(code: string, info = ''): void {
    const indent = this.#indent
    this.#indent = ''
    // The code of an item begins on a line of its own.
    if (this.text !== '' && !this.#isLineStart) this.#add('\n')
    this.#styled('pre', () => this.#write(code), info.split(/\s/)[0])
    this.#indent = indent
  }

  #quote(tokens: readonly Token[]): void {
    const isShown = this.#markup.shows.includes('quote') && this.#indent === '' && !this.#open.has('quote')
    if (isShown) {
      this.#styled('quote', () => this.blocks(tokens, '\n\n'))
      return
    }
    const marks = this.#markup.spoken ? ['', ''] : ['“', '”']
    this.#write(marks[0] ?? '')
    this.blocks(tokens, '\n\n')
    // The mark that ends code stands alone in its line on many platforms.
    const code = this.styles.at(-1)
    if (code?.kind === 'pre' && code.to === this.text.length) this.#write('\n')
    this.#write(marks[1] ?? '')
  }

  #list({ items, ordered, start, loose }: Tokens.List): void {
    const indent = this.#indent
    const bullet = this.#markup.spoken ? '' : ['• ', '◦ ', '▪ '][this.#depth % 3]
    this.#depth++
    for (const [index, item] of items.entries()) {
      this.#indent = indent
      if (index > 0) this.#write(loose ? '\n\n' : '\n')
      const number = ordered ? `${Number(start || 1) + index}. ` : ''
      this.#write(item.task ? `${number}${item.checked ? '☑' : '☐'} ` : number || (bullet ?? ''))
      this.#indent = this.#markup.spoken ? '' : indent + ' '.repeat(ordered ? 3 : 2)
      this.blocks(item.tokens, loose ? '\n\n' : '\n')
    }
    this.#depth--
    this.#indent = indent
  }

  #table(table: Tokens.Table): void {
    const aligned = this.#markup.shows.includes('pre') && this.#indent === '' ? alignedTable(table) : undefined
    if (aligned !== undefined) {
      this.#code(aligned)
      return
    }
    const rows = table.rows.length > 0 ? table.rows : [table.header]
    const indent = this.#indent
    for (const [index, row] of rows.entries()) {
      this.#indent = indent
      if (index > 0) this.#write('\n')
      this.#write(this.#markup.spoken ? '' : '• ')
      this.#indent = this.#markup.spoken ? '' : `${indent}  `
      let isFirst = true
      for (const [column, cell] of row.entries()) {
        if (cell.tokens.length === 0) continue
        if (!isFirst) this.#write('\n')
        isFirst = false
        const head = table.header[column]
        if (head && head.tokens.length > 0 && row !== table.header) {
          this.#styled('bold', () => this.#inline(head.tokens))
          this.#write(': ')
        }
        this.#inline(cell.tokens)
      }
    }
    this.#indent = indent
  }

  #inline(tokens: readonly Token[]): void {
    for (const token of readTags(tokens)) this.#span(token as Tokens.Generic)
  }

  #span(token: Tokens.Generic): void {
    const { type, tokens = [], text = '', raw } = token
    if (type === 'strong') this.#styled('bold', () => this.#inline(tokens))
    else if (type === 'em') this.#styled('italic', () => this.#inline(tokens))
    else if (type === 'del') this.#styled('strike', () => this.#inline(tokens))
    else if (type === 'codespan') this.#styled('code', () => this.#write(text))
    else if (type === 'br') this.#write('\n')
    else if (type === 'link') this.#link(token as Tokens.Link, () => this.#inline(tokens))
    else if (type === 'image') this.#link(token as Tokens.Image, () => this.#write(decoded(text)))
    else if (type === 'escape') this.#write(text)
    else if (type === 'html') this.#write(raw)
    else if (type === 'pair') this.#pair(token as unknown as PairedTag)
    else if (type === 'code') this.#code(text)
    else if (type === 'list' || type === 'table' || type === 'blockquote') this.#blockWithin(token)
    else if (type === 'part') this.#part(tokens)
    else if (type === 'checkbox') return
    else if (tokens.length > 0) this.#inline(tokens)
    else this.#write(decoded(text || raw))
  }

  /** Adds a block that stands among words. */
  #blockWithin(token: Tokens.Generic): void {
    if (this.text !== '' && !this.#isLineStart) this.#write('\n')
    this.#block(token)
    this.#isBlockEnd = true
  }

  /** Adds a part of a list or a table whose other parts are in other paragraphs. */
  #part(tokens: readonly Token[]): void {
    this.#blockWithin({ type: 'list', raw: '', items: [{ tokens: [{ type: 'text', raw: '', text: '', tokens }] }] })
  }

  #pair({ style, href, tokens }: PairedTag): void {
    if (href !== undefined) this.#link({ href }, () => this.#inline(tokens))
    else if (style !== undefined) this.#styled(style, () => this.#inline(tokens))
  }

  /** Writes the words of a link, and its address where the platform does not show it or the words claim another one. */
  #link({ href }: { readonly href: string }, words: () => void): void {
    const address = decoded(href)
    const from = this.text.length
    const isLink = this.#markup.shows.includes('link') && SHOWN_ADDRESS.test(address) && address.length <= ADDRESS_CHARS_MAX
    if (isLink && !this.#open.has('link')) this.#styled('link', words, address)
    else words()
    const shown = this.text.slice(from).trim()
    const isSame = [address, address.replace(/^(?:mailto:|tel:|https?:\/\/)/i, '')].includes(shown)
    const claimsAddress = WEB_ADDRESS.test(shown)
    if (isSame || claimsAddress) this.styles = this.styles.filter((style) => style.from < from || style.kind !== 'link')
    if (this.#markup.spoken) {
      if (isSame || shown === '') {
        this.text = this.text.slice(0, from) + (URL.parse(address)?.host ?? '')
        this.#isLineStart = this.text.endsWith('\n')
      }
      return
    }
    if (shown === '') this.#write(address)
    else if (!isSame && address !== '' && (!isLink || claimsAddress)) this.#write(` (${address})`)
  }

  #styled(kind: StyleKind, body: () => void, value?: string): void {
    if (!this.#markup.shows.includes(kind) || this.#open.has(kind)) {
      body()
      return
    }
    const from = this.text.length
    this.#open.add(kind)
    body()
    this.#open.delete(kind)
    const style = trimmed(this.text, { kind, from, to: this.text.length, ...(value && { value }) })
    if (!style) return
    const before = this.styles.findLast((other) => other.kind === kind)
    // Marks of two neighbours would touch.
    if (before?.to === style.from && before.value === style.value && kind !== 'quote' && kind !== 'pre') {
      this.styles = this.styles.map((other) => (other === before ? { ...before, to: style.to } : other))
    } else this.styles.push(style)
  }

  #write(text: string): void {
    if (text === '') return
    if (this.#isBlockEnd && text[0] !== '\n') this.#add('\n')
    if (this.#isLineStart && text[0] !== '\n') this.text += this.#indent
    this.#add(text.replace(/\n(?=[^\n])/g, `\n${this.#indent}`))
  }

  #add(text: string): void {
    this.text += text
    this.#isBlockEnd = false
    this.#isLineStart = text.endsWith('\n')
  }
}

/** Returns the table as columns of equal width; undefined if it is too wide or has a link, which code does not show. */
function alignedTable({ header, rows }: Tokens.Table): string | undefined {
  if (JSON.stringify([header, rows]).includes('"type":"link"')) return undefined
  const cells = [header, ...rows].map((row) => row.map(({ tokens }) => plainOf(tokens)))
  const widths = header.map((_, column) => Math.max(1, ...cells.map((row) => widthOf(row[column] ?? ''))))
  if (widths.reduce((sum, width) => sum + width + 2, 0) > TABLE_COLUMNS_MAX || cells.flat().some((cell) => cell.includes('\n')))
    return undefined
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd()
  const [head = [], ...body] = cells
  return [
    ...(head.some((cell) => cell !== '') ? [line(head), widths.map((width) => '─'.repeat(width)).join('  ')] : []),
    ...body.map(line),
  ].join('\n')
}

function plainOf(tokens: readonly Token[]): string {
  const layout = new Layout({ shows: [] })
  layout.blocks([{ type: 'text', raw: '', text: '', tokens: [...tokens] } as Tokens.Text], '')
  return layout.text.trim()
}

const widthOf = (text: string): number =>
  Array.from(text).reduce((sum, character) => sum + (INVISIBLE.test(character) ? 0 : WIDE.test(character) ? 2 : 1), 0)
