/** Reads the tags of HTML that models write within Markdown. */
import type { StyleKind } from '@sluice/sdk'
import type { Token, Tokens } from 'marked'
import { BLOCK_TAGS, besideBlocks, blockOf, endedBy, isPart } from './html-blocks.ts'
import { decoded } from './references.ts'

/** Words between two tags that belong together, with the style that the tags mean, or with the address of a link. */
export interface PairedTag {
  readonly type: 'pair'
  readonly style?: StyleKind | undefined
  readonly href?: string | undefined
  readonly tokens: Token[]
}

/** The tags that are dropped where they have a partner in the text, and the styles that they mean. */
const STYLES: Readonly<Record<string, StyleKind | undefined>> = {
  b: 'bold',
  strong: 'bold',
  summary: 'bold',
  h1: 'bold',
  h2: 'bold',
  h3: 'bold',
  h4: 'bold',
  i: 'italic',
  em: 'italic',
  cite: 'italic',
  s: 'strike',
  del: 'strike',
  strike: 'strike',
  a: undefined,
  u: undefined,
  ins: undefined,
  mark: undefined,
  small: undefined,
  big: undefined,
  sub: undefined,
  sup: undefined,
  span: undefined,
  font: undefined,
  center: undefined,
  div: undefined,
  p: undefined,
  details: undefined,
  pre: undefined,
}
const CODE = /^<(code|kbd|samp|tt)(?: class="[^"<>]{0,100}")?>/
const NAME = /^<(\/?)([a-zA-Z][a-zA-Z0-9]*)/
const HREF = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)')/i
const SRC = /\ssrc\s*=\s*(?:"([^"]*)"|'([^']*)')/i
const ALT = /\salt\s*=\s*(?:"([^"]*)"|'([^']*)')/i
const ALONE: readonly string[] = ['br', 'hr', 'wbr', 'img']
const COMMENT = /^<!--/
/** Tags within one another beyond this depth are dropped without their style. */
const DEPTH_MAX = 12
const SCRIPTS = {
  sub: '₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙᵢ',
  sup: '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ',
}
/** A suffix such as in `1st`, or the number of a note. */
const SUFFIX = /^(?:\p{L}{2,}|[[©®™*†].*)$/u
const SCRIPT_CHARACTERS = '0123456789+-=()ni'

export const textToken = (source: string): Tokens.Text => ({ type: 'text', raw: source, text: source, escaped: false })

/** Returns the code between two tags at the beginning of the source, in the form of code between backticks. */
export function codeOfTag(source: string): Tokens.Tag | undefined {
  const [open = '', name] = CODE.exec(source) ?? []
  const end = name === undefined ? -1 : source.indexOf(`</${name}>`, open.length)
  if (name === undefined || end <= open.length) return undefined
  const text = decoded(source.slice(open.length, end).replace(/\n$/, ''))
  const token = { type: text.includes('\n') ? 'code' : 'codespan', raw: source.slice(0, end + name.length + 3), text }
  return token as unknown as Tokens.Tag
}

const tagOf = ({ raw }: Token): { readonly isClosing: boolean; readonly name: string } => {
  const [, slash = '', name = ''] = NAME.exec(raw) ?? []
  return { isClosing: slash !== '', name: name.toLowerCase() }
}

const attributeOf = (raw: string, attribute: RegExp): string | undefined => {
  const [, double, single] = attribute.exec(raw) ?? []
  return double ?? single
}

/** Returns the `html` tokens in the order of the text. */
function htmlOf(tokens: readonly Token[], found: Token[] = []): Token[] {
  for (const token of tokens as readonly Tokens.Generic[]) {
    if (token.type === 'html') found.push(token)
    const cells = token.type === 'table' ? [token.header, ...token.rows].flat() : []
    for (const part of [...cells, ...(token.items ?? [])] as readonly Tokens.Generic[]) htmlOf(part.tokens ?? [], found)
    if (token.tokens) htmlOf(token.tokens, found)
  }
  return found
}

/** Returns what replaces a tag that has no partner. */
function aloneOf(name: string, raw: string): Partial<Tokens.Generic> {
  if (name === 'img') return { type: 'image', href: attributeOf(raw, SRC) ?? '', text: attributeOf(raw, ALT) ?? '' }
  return name === 'wbr' ? { type: 'tag', raw: '' } : { type: 'br' }
}

/** Turns the `html` tokens of comments, and of tags that have a partner in the text, into `tag` tokens, which are not shown. */
export function markTags(tokens: readonly Token[]): void {
  const open = new Map<string, Token[]>()
  // The parts of lists and tables, and for each open block the number of parts before it.
  const parts: Token[] = []
  const before = new Map<Token, number>()
  for (const token of htmlOf(tokens)) {
    const { isClosing, name } = tagOf(token)
    if (isPart(name)) parts.push(token)
    if (COMMENT.test(token.raw)) token.type = 'tag'
    else if (ALONE.includes(name)) Object.assign(token, aloneOf(name, token.raw))
    else if (!Object.hasOwn(STYLES, name) && !BLOCK_TAGS.has(name)) continue
    else if (!isClosing) {
      before.set(token, parts.length)
      const same = open.get(name)
      if (same) same.push(token)
      else open.set(name, [token])
    } else {
      const partner = open.get(name)?.pop()
      if (!partner) continue
      partner.type = token.type = 'tag'
      if (BLOCK_TAGS.has(name)) for (const part of parts.splice(before.get(partner) ?? 0)) part.type = 'tag'
    }
  }
}

/** Returns the tokens without tags that are not shown, and with pairs of tags as one token. */
export function readTags(tokens: readonly Token[]): readonly Token[] {
  if (!tokens.some(({ type }) => type === 'tag')) return tokens
  const root: Token[] = []
  const open: { readonly name: string; readonly token: Token; readonly tokens: Token[] }[] = []
  const top = (): Token[] => open.at(-1)?.tokens ?? root
  /** Closes the tag at this place, and all within it: other tags than parts of blocks mean no style there. */
  const close = (at: number): void => {
    while (open.length > at) {
      const frame = open.pop()
      if (!frame) return
      const isPair = open.length === at || isPart(frame.name)
      top().push(...(isPair ? pairOf(frame.name, frame.token.raw, frame.tokens) : frame.tokens))
    }
  }
  for (const token of tokens) {
    if (token.type !== 'tag') {
      top().push(token)
      continue
    }
    const { isClosing, name } = tagOf(token)
    const at = isClosing ? open.findLastIndex((frame) => frame.name === name) : endedPart(open, name)
    if (at >= 0) close(at)
    if (name !== '' && !isClosing && open.length < DEPTH_MAX) open.push({ name, token, tokens: [] })
  }
  for (const { tokens: rest } of open) root.push(...rest)
  return besideBlocks(root)
}

/** Returns the place of the outermost part of the same block that ends where one of this name begins; -1 without such a part. */
function endedPart(open: readonly { readonly name: string }[], name: string): number {
  const ends = endedBy(name)
  const block = open.findLastIndex((frame) => BLOCK_TAGS.has(frame.name))
  return open.findIndex((frame, at) => at > block && ends.includes(frame.name))
}

/** Returns the words between two tags with the meaning of the tags. */
function pairOf(name: string, raw: string, tokens: Token[]): readonly Token[] {
  const block = blockOf(name, raw, tokens)
  if (block) return block
  const style = STYLES[name]
  const href = name === 'a' ? attributeOf(raw, HREF) : undefined
  if (style !== undefined || href !== undefined) return [{ type: 'pair', raw, style, href, tokens } as unknown as Token]
  return name === 'sub' || name === 'sup' ? scriptOf(name, tokens) : tokens
}

/** Returns small characters where they exist; else a superscript that is not a suffix of a word is written as a power. */
function scriptOf(name: 'sub' | 'sup', tokens: Token[]): Token[] {
  const [token] = tokens
  if (tokens.length !== 1 || token?.type !== 'text') return tokens
  const places = Array.from(decoded(token.text), (character) => SCRIPT_CHARACTERS.indexOf(character))
  if (!places.includes(-1)) return [textToken(places.map((place) => SCRIPTS[name][place]).join(''))]
  if (name === 'sub' || SUFFIX.test(token.text)) return tokens
  return [textToken(token.text.length === 1 ? `^${token.text}` : `^(${token.text})`)]
}
