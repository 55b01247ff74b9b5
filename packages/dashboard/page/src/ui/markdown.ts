/**
 * Reads the part of Markdown that models write, as data. HTML other than `<br>` is text, and no address is followed. The time is linear in the
 * length of the text.
 */

export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'em' | 'del'; readonly inner: readonly Inline[] }
  | { readonly kind: 'link'; readonly label: string; readonly url: string }

export type Block =
  | { readonly kind: 'paragraph'; readonly inner: readonly Inline[] }
  | { readonly kind: 'heading'; readonly level: number; readonly inner: readonly Inline[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | { readonly kind: 'list'; readonly start: number | null; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: 'table'; readonly head: readonly (readonly Inline[])[]; readonly rows: readonly (readonly (readonly Inline[])[])[] }
  | { readonly kind: 'rule' }

/** Lists and quotes within each other; deeper ones are text. */
const DEPTH_MAX = 6
const CELLS_MAX = 50

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/
const ITEM = /^( {0,12})(?:[-*+]|(\d{1,9})[.)])[ \t]+(?=\S)/
const TASK = /^\[([ xX])\][ \t]+/
const isRule = (line: string): boolean => /^ {0,3}[-*_ \t]{3,}$/.test(line) && /^(?:-{3,}|\*{3,}|_{3,})$/.test(line.replace(/[ \t]/g, ''))
const isDivider = (line: string): boolean => line.includes('-') && line.includes('|') && /^[ \t|:-]+$/.test(line)

export const parseMarkdown = (text: string): readonly Block[] => blocksOf(text.split('\n'), 0)

function blocksOf(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = []
  let paragraph: string[] = []
  const flush = () => {
    if (paragraph.length > 0) blocks.push({ kind: 'paragraph', inner: inlineOf(paragraph.join('\n')) })
    paragraph = []
  }
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? ''
    const special = line.trim() === '' ? ([undefined, at + 1] as const) : blockAt(lines, at, depth)
    if (special) {
      flush()
      const [block, next] = special
      if (block) blocks.push(block)
      at = next
    } else {
      paragraph.push(line)
      at++
    }
  }
  flush()
  return blocks
}

/** Returns the block that begins at a line, and the line after it; undefined for a line of a paragraph. */
function blockAt(lines: readonly string[], at: number, depth: number): readonly [Block, number] | undefined {
  const line = lines[at] ?? ''
  const fence = FENCE.exec(line)
  if (fence) return codeAt(lines, at, fence[1] ?? '', fence[2] ?? '')
  const heading = HEADING.exec(line)
  if (heading)
    return [{ kind: 'heading', level: heading[1]?.length ?? 1, inner: inlineOf((heading[2] ?? '').replace(/[ \t]#*$/, '')) }, at + 1]
  if (isRule(line)) return [{ kind: 'rule' }, at + 1]
  if (line.includes('|') && isDivider(lines[at + 1] ?? '')) return tableAt(lines, at)
  if (depth >= DEPTH_MAX) return undefined
  if (line.trimStart().startsWith('>')) return quoteAt(lines, at, depth)
  return ITEM.test(line) ? listAt(lines, at, depth) : undefined
}

function codeAt(lines: readonly string[], at: number, fence: string, language: string): readonly [Block, number] {
  let end = at + 1
  while (end < lines.length && !(lines[end]?.trim().startsWith(fence) && lines[end]?.trim().replaceAll(fence[0] ?? '`', '') === '')) end++
  return [{ kind: 'code', language, text: lines.slice(at + 1, end).join('\n') }, end + 1]
}

function quoteAt(lines: readonly string[], at: number, depth: number): readonly [Block, number] {
  let end = at
  while (lines[end]?.trimStart().startsWith('>')) end++
  const inner = lines.slice(at, end).map((line) => line.trimStart().slice(1).replace(/^ /, ''))
  return [{ kind: 'quote', blocks: blocksOf(inner, depth + 1) }, end]
}

function listAt(lines: readonly string[], from: number, depth: number): readonly [Block, number] {
  const first = ITEM.exec(lines[from] ?? '')
  const indent = first?.[1]?.length ?? 0
  const start = first?.[2] === undefined ? null : Number(first[2])
  const items: string[][] = []
  let at = from
  for (; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const item = ITEM.exec(line)
    const own = line.length - line.trimStart().length
    if (item && own <= indent) {
      if (own < indent || (item[2] === undefined) !== (start === null) || isRule(line)) break
      items.push([line.slice(item[0].length).replace(TASK, (_, done: string) => (done === ' ' ? '☐ ' : '☑ '))])
    } else if (line.trim() === '') {
      const next = lines[at + 1] ?? ''
      if (next.trim() === '' || (next.length - next.trimStart().length <= indent && !ITEM.test(next))) break
      items.at(-1)?.push('')
    } else if (own > indent) items.at(-1)?.push(line.slice(Math.min(own, indent + 2)))
    else break
  }
  return [{ kind: 'list', start, items: items.map((item) => blocksOf(item, depth + 1)) }, at]
}

const cellsOf = (line: string): (readonly Inline[])[] =>
  line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split('|')
    .slice(0, CELLS_MAX)
    .map((cell) => inlineOf(cell.trim()))

function tableAt(lines: readonly string[], at: number): readonly [Block, number] {
  let end = at + 2
  while (lines[end]?.includes('|')) end++
  return [{ kind: 'table', head: cellsOf(lines[at] ?? ''), rows: lines.slice(at + 2, end).map(cellsOf) }, end]
}

const MARKS = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'del'],
  ['*', 'em'],
  ['_', 'em'],
] as const
/** Text that is marked twice is not longer, so that the time stays linear. */
const INNER_CHARS_MAX = 200
const PUNCTUATION = /[!-/:-@[-`{-~]/
const WORD = /[\p{L}\p{N}]/u

/** Returns the parts of a text. */
export function inlineOf(text: string, depth = 0): Inline[] {
  const parts: Inline[] = []
  const search: Search = { endless: new Set(), ticks: undefined }
  let plain = ''
  const add = (part: Inline) => {
    if (plain !== '') parts.push({ kind: 'text', text: plain })
    plain = ''
    parts.push(part)
  }
  for (let at = 0; at < text.length; ) {
    const found = partAt(text, at, depth, search)
    if (found) {
      add(found.part)
      at = found.end
    } else if (text[at] === '\\' && PUNCTUATION.test(text[at + 1] ?? '')) {
      plain += text[at + 1]
      at += 2
    } else {
      plain += text[at]
      at++
    }
  }
  if (plain !== '') parts.push({ kind: 'text', text: plain })
  return parts
}

/** The findings of earlier searches in a text, so that no search is repeated. */
interface Search {
  /** Marks that have no end in the rest of the text. */
  readonly endless: Set<string>
  /** The places of runs of backticks by their length. */
  ticks: Map<number, number[]> | undefined
}

interface Found {
  readonly part: Inline
  readonly end: number
}

function partAt(text: string, at: number, depth: number, search: Search): Found | undefined {
  switch (text[at]) {
    case '`':
      return codeSpanAt(text, at, search)
    case '*':
    case '_':
    case '~':
      return depth < DEPTH_MAX ? markedAt(text, at, depth, search) : undefined
    case '[':
      return linkAt(text, at)
    case '!':
      // A picture is an address as any other: its server would learn who reads the answer.
      return text[at + 1] === '[' ? linkAt(text, at + 1) : undefined
    case '<':
      return bracketedAt(text, at)
    case 'h':
      return addressAt(text, at)
    default:
      return undefined
  }
}

function codeSpanAt(text: string, at: number, search: Search): Found | undefined {
  if (text[at - 1] === '`') return undefined
  search.ticks ??= ticksIn(text)
  const length = lengthOfTicks(text, at)
  const runs = search.ticks.get(length) ?? []
  // The runs are looked at in order, so that the runs before this place are not needed any more.
  while ((runs[0] ?? Number.POSITIVE_INFINITY) <= at) runs.shift()
  const [end] = runs
  return end === undefined ? undefined : { part: { kind: 'code', text: text.slice(at + length, end) }, end: end + length }
}

function lengthOfTicks(text: string, at: number): number {
  let end = at
  while (text[end] === '`') end++
  return end - at
}

/** Returns the places of the runs of backticks, in order, by their length. */
function ticksIn(text: string): Map<number, number[]> {
  const found = new Map<number, number[]>()
  for (let at = text.indexOf('`'); at >= 0; ) {
    const length = lengthOfTicks(text, at)
    const places = found.get(length)
    if (places) places.push(at)
    else found.set(length, [at])
    at = text.indexOf('`', at + length)
  }
  return found
}

function markedAt(text: string, at: number, depth: number, { endless }: Search): Found | undefined {
  const [mark, kind] = MARKS.find(([one]) => text.startsWith(one, at)) ?? []
  if (mark === undefined || kind === undefined || endless.has(mark)) return undefined
  const start = at + mark.length
  if (/\s|^$/.test(text[start] ?? '') || (mark[0] === '_' && WORD.test(text[at - 1] ?? ''))) return undefined
  const end = endOfMark(text, start, mark)
  if (end === undefined) {
    endless.add(mark)
    return undefined
  }
  return { part: { kind, inner: inlineOf(text.slice(start, end), depth + 1) }, end: end + mark.length }
}

/** Returns the place of the mark that ends the text from `start` on. What the same mark marks inside is part of it, unless that has no end. */
function endOfMark(text: string, start: number, mark: string): number | undefined {
  let first: number | undefined
  let inside = 0
  for (let at = text.indexOf(mark, start + 1); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    if (first !== undefined && at - first > INNER_CHARS_MAX) break
    const [before = '', after = ''] = [text[at - 1], text[at + mark.length]]
    const isLonger = mark.length === 1 && (after === mark || before === mark)
    if (isLonger) continue
    if (/\s/.test(before)) {
      if (!/\s|^$/.test(after)) inside++
      continue
    }
    if (mark[0] === '_' && WORD.test(after)) continue
    // Of three marks at the end, the first one ends what began inside.
    const end = mark.length === 2 && after === mark[0] && text.slice(start, at).includes(after) ? at + 1 : at
    first ??= end
    if (inside === 0) return end
    inside--
  }
  return first
}

const LABEL_CHARS_MAX = 500
const URL_CHARS_MAX = 2000
/** The address of a link, which may have brackets in pairs, with a title that is not shown. */
const TARGET = /^(?:<([^<>\s]+)>|((?:[^\s()<]|\([^\s()]*\))+))(?:[ \t]+(?:"[^"]*"|'[^']*'))?[ \t]*\)/

/** Returns an address that a browser may open; undefined for scripts, data and anything else. */
export function openable(address: string): string | undefined {
  const url = address.length <= URL_CHARS_MAX ? URL.parse(address) : null
  return url && ['http:', 'https:', 'mailto:'].includes(url.protocol) && url.username === '' ? url.href : undefined
}

function linkAt(text: string, at: number): Found | undefined {
  const window = text.slice(at + 1, at + 1 + LABEL_CHARS_MAX)
  const close = window.search(/[[\]]/)
  if (close < 0 || window[close] !== ']') return undefined
  const open = at + 1 + close + 1
  if (text[open] !== '(') return undefined
  const target = TARGET.exec(text.slice(open + 1, open + 2 + URL_CHARS_MAX))
  const url = target ? openable(target[1] ?? target[2] ?? '') : undefined
  if (!target || url === undefined) return undefined
  return { part: { kind: 'link', label: window.slice(0, close) || url, url }, end: open + 1 + target[0].length }
}

/** Reads `<https://…>` and `<br>`. */
function bracketedAt(text: string, at: number): Found | undefined {
  const line = /^<br[ \t]{0,9}\/?>/i.exec(text.slice(at, at + 16))
  if (line) return { part: { kind: 'text', text: '\n' }, end: at + line[0].length }
  const address = text[at + 1] === 'h' ? addressAt(text, at + 1) : undefined
  return address && text[address.end] === '>' ? { part: address.part, end: address.end + 1 } : undefined
}

function addressAt(text: string, at: number): Found | undefined {
  if (WORD.test(text[at - 1] ?? '') || !(text.startsWith('https://', at) || text.startsWith('http://', at))) return undefined
  const rest = text.slice(at, at + URL_CHARS_MAX + 1)
  const space = rest.search(/[\s<>"`]/)
  const written = (space < 0 ? rest : rest.slice(0, space)).replace(/[.,:;!?)\]}'*_~]{1,9}$/, '')
  const url = openable(written)
  return url === undefined ? undefined : { part: { kind: 'link', label: written, url }, end: at + written.length }
}
