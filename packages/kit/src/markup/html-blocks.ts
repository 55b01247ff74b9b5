/** Turns the lists, tables and quotes that models write with HTML tags into those of CommonMark. */
import type { Token, Tokens } from 'marked'

/** The tags whose words are a block. They are dropped where they have a partner in the text, with the parts that stand between them. */
export const BLOCK_TAGS: ReadonlySet<string> = new Set(['ul', 'ol', 'dl', 'table', 'blockquote'])
/** The tags of parts of such blocks. HTML lets a part without a closing tag end where the next one begins. */
const PARTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['li', ['li']],
  ['dt', ['dt', 'dd']],
  ['dd', ['dt', 'dd']],
  ['tr', ['tr', 'td', 'th']],
  ['td', ['td', 'th']],
  ['th', ['td', 'th']],
  ['thead', []],
  ['tbody', []],
  ['tfoot', []],
  ['caption', []],
])
const START = /\sstart\s*=\s*["']?(\d{1,9})/i

export const isPart = (name: string): boolean => PARTS.has(name)

/** Returns the parts that end where a part of this name begins; empty for any other tag. */
export const endedBy = (name: string): readonly string[] => PARTS.get(name) ?? []

/** Words that are a part of a block. */
interface Part extends Tokens.Generic {
  readonly type: 'part'
  readonly name: string
  readonly tokens: Token[]
}

const isBlank = (token: Token): boolean => token.type === 'br' || (token.type === 'text' && token.raw.trim() === '')
const isBlock = (token: Token | undefined): boolean => token !== undefined && ['list', 'table', 'blockquote'].includes(token.type)
const isPartNamed = (token: Token, ...names: readonly string[]): token is Part => token.type === 'part' && names.includes(token.name)

/** Returns the block or the part that stands between two tags of this name; undefined for any other tag. */
export function blockOf(name: string, raw: string, tokens: readonly Token[]): readonly Token[] | undefined {
  const inner = besideBlocks(tokens)
  if (name === 'thead' || name === 'tbody' || name === 'tfoot') return inner
  if (isPart(name)) return [{ type: 'part', raw, name, tokens: inner } satisfies Part]
  if (name === 'table') return tableOf(inner)
  if (name === 'blockquote') return [{ type: 'blockquote', raw, text: '', tokens: [wordsOf(inner)] }]
  return BLOCK_TAGS.has(name) ? listOf(name, raw, inner) : undefined
}

const wordsOf = (tokens: Token[]): Tokens.Text => ({ type: 'text', raw: '', text: '', tokens }) as Tokens.Text

function listOf(name: string, raw: string, tokens: readonly Token[]): Token[] {
  const items: Token[][] = []
  for (const token of tokens) {
    if (isPartNamed(token, 'li', 'dt')) items.push(token.tokens)
    else if (isBlank(token)) continue
    else {
      // A description, a list within the list, and words without a tag belong to the item before them.
      const before = items.at(-1) ?? []
      if (items.length === 0) items.push(before)
      if (isPartNamed(token, 'dd')) before.push(...(before.length > 0 ? [textOf(': ')] : []), ...token.tokens)
      else before.push(token)
    }
  }
  const start = name === 'ol' ? Number(START.exec(raw)?.[1] ?? 1) : ''
  const list = items.map((words) => ({ type: 'list_item', raw: '', task: false, loose: false, text: '', tokens: [wordsOf(words)] }))
  return items.length === 0 ? [] : [{ type: 'list', raw, ordered: name === 'ol', start, loose: false, items: list } as unknown as Token]
}

function tableOf(tokens: readonly Token[]): Token[] {
  const rows = tokens.filter((token) => isPartNamed(token, 'tr')).map(({ tokens: row }) => cellsOf(row))
  const others = tokens.filter((token) => !isPartNamed(token, 'tr') && !isBlank(token))
  const [first = []] = rows
  const columns = Math.max(0, ...rows.map((row) => row.length))
  if (columns === 0) return others
  const hasHead = first.some(({ name }) => name === 'th') && first.every(({ name }) => name === 'th')
  const cells = (row: readonly Part[]) => Array.from({ length: columns }, (_, at) => ({ text: '', tokens: row[at]?.tokens ?? [] }))
  const table = { type: 'table', raw: '', header: cells(hasHead ? first : []), rows: rows.slice(hasHead ? 1 : 0).map(cells), align: [] }
  return [...others, table as unknown as Token]
}

/** Returns the cells of a row. Words outside of a cell are one. */
const cellsOf = (tokens: readonly Token[]): Part[] =>
  tokens
    .filter((token) => !isBlank(token))
    .map((token) => (isPartNamed(token, 'td', 'th') ? token : { type: 'part', raw: token.raw, name: 'td', tokens: [token] }))

const textOf = (text: string): Token => ({ type: 'text', raw: text, text, escaped: false })

/** Returns the tokens without the white space and line breaks around blocks and at both ends. */
export function besideBlocks(tokens: readonly Token[]): Token[] {
  const kept: Token[] = []
  for (const [at, token] of tokens.entries()) {
    const isAfter = kept.length === 0 || isBlock(kept.at(-1))
    const isBefore = at === tokens.length - 1 || isBlock(tokens[at + 1])
    if ((isAfter || isBefore) && isBlank(token)) continue
    if (token.type !== 'text' || !(isAfter || isBefore)) kept.push(token)
    else {
      const text = isAfter ? token.raw.trimStart() : token.raw
      kept.push(textOf(isBefore ? text.trimEnd() : text))
    }
  }
  return kept
}
