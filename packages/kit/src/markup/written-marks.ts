/** Writes styles as marks within the text, for platforms that read a dialect of Markdown. */
import type { StyledText, StyleKind, TextStyle } from '@sluice/sdk'

interface Dialect {
  readonly marks: Readonly<Partial<Record<'bold' | 'italic' | 'strike', string>>>
  /** Whether the platform reads marks in the middle of a word. */
  readonly inWords: boolean
  /** Whether a style may go over the end of a line. */
  readonly overLines: boolean
  /** A run of more backticks than the code has encloses code. */
  readonly longFences: boolean
  /** The word behind the marks of a block names its language. */
  readonly languages: boolean
  /** Returns the character so that the platform shows it and does not read it as a mark. */
  protect(character: string): string
}

const ZERO_WIDTH_SPACE = '\u200b'
const NO_BREAK_SPACE = '\u00a0'
const WORD = /[\p{L}\p{N}\p{M}_]/u
const PUNCTUATION = /[\p{P}\p{S}]/u
const LANGUAGE = /^[\w+#.-]{1,20}$/
/** An address stays as it is, because platforms make a link of it. The other groups are what a platform may read as marks. */
const SPECIAL = /https?:\/\/[^\s<>]+|^ +|[\\`*_~|<[]|&(?=#?\w{1,31};)|^(?:>|#{1,6}(?=\s|$)|[-+](?=[\s-])|=(?==))/gm

const backslash = (character: string): string => `\\${character}`
/** An invisible character keeps the mark from being one. */
const apart = (character: string): string => `${character}${ZERO_WIDTH_SPACE}`
const reference = (character: string): string => `&#${character.codePointAt(0)};`

const COMMON: Dialect = {
  marks: { bold: '**', italic: '*', strike: '~~' },
  inWords: true,
  overLines: true,
  longFences: true,
  languages: true,
  protect: backslash,
}
const DISCORD: Dialect = { ...COMMON, longFences: false }
const LARK: Dialect = { ...COMMON, longFences: false, protect: reference }
const WECOM: Dialect = { ...COMMON, longFences: false, protect: apart }
const WHATSAPP: Dialect = {
  marks: { bold: '*', italic: '_', strike: '~' },
  inWords: false,
  overLines: false,
  longFences: false,
  languages: false,
  protect: apart,
}

/** CommonMark with strikethrough, as Mattermost, Nextcloud Talk and DingTalk read it. */
export const writeCommonMark = (styled: StyledText): string => written(styled, COMMON)
export const writeDiscord = (styled: StyledText): string => written(styled, DISCORD)
/** Cards of Lark and Feishu show a character reference where a mark is meant as a character. */
export const writeLark = (styled: StyledText): string => written(styled, LARK)
/** Platforms of which no escape is documented. */
export const writeUnescaped = (styled: StyledText): string => written(styled, WECOM)
export const writeWhatsapp = (styled: StyledText): string => written(styled, WHATSAPP)

function written({ text, styles }: StyledText, dialect: Dialect): string {
  const all = dialect.overLines ? styles : styles.flatMap((style) => byLine(text, style))
  return spanOf(text, 0, text.length, all, dialect)
}

/** Marks of these platforms end with their line. */
function byLine(text: string, style: TextStyle): TextStyle[] {
  if (style.kind === 'pre' || style.kind === 'quote') return [style]
  const lines: TextStyle[] = []
  for (let from = style.from; from < style.to; ) {
    const newline = text.indexOf('\n', from)
    const to = newline < 0 || newline > style.to ? style.to : newline
    if (text.slice(from, to).trim() !== '') lines.push({ ...style, from, to })
    from = to + 1
  }
  return lines
}

/** Writes one part of the text. `styles` are the ones that lie in it. */
function spanOf(text: string, from: number, to: number, styles: readonly TextStyle[], dialect: Dialect): string {
  let result = ''
  let at = from
  for (const [index, style] of styles.entries()) {
    if (style.from < at || style.to > to) continue
    const inner = styles.slice(index + 1).filter((other) => other.from >= style.from && other.to <= style.to)
    result += escaped(text, at, style.from, dialect) + styledPart(text, style, inner, dialect)
    at = style.to
  }
  return result + escaped(text, at, to, dialect)
}

function styledPart(text: string, style: TextStyle, inner: readonly TextStyle[], dialect: Dialect): string {
  const { kind, from, to, value = '' } = style
  const code = text.slice(from, to)
  if (kind === 'pre') return blockOfCode(code, value, dialect)
  if (kind === 'code') return spanOfCode(code, dialect)
  const body = spanOf(text, from, to, inner, dialect)
  if (kind === 'quote') return body.replace(/^/gm, '> ')
  if (kind === 'link') return `[${body}](${value.replace(/[()<>\s\\]/g, percent)})`
  const mark = markOf(text, style, inner, dialect)
  return mark + body + mark
}

const percent = (character: string): string => `%${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, '0')}`

/** Returns the mark of a style, or nothing where the platform would show the mark instead of reading it. */
function markOf(text: string, { kind, from, to }: TextStyle, inner: readonly TextStyle[], { marks, inWords }: Dialect): string {
  const mark = marks[kind as Exclude<StyleKind, 'code' | 'pre' | 'quote' | 'link'>]
  if (mark === undefined) return ''
  const [before, after] = [characterBefore(text, from), characterAt(text, to)]
  const isInWord = WORD.test(before) || WORD.test(after)
  if (!inWords) return isInWord || before === mark || after === mark || !isFree(mark, text.slice(from, to)) ? '' : mark
  // A mark between a letter and punctuation neither opens nor closes. Code, links and other marks inside begin with punctuation.
  const opens = !(WORD.test(before) && (PUNCTUATION.test(characterAt(text, from)) || inner.some((other) => other.from === from)))
  const closes = !(WORD.test(after) && (PUNCTUATION.test(characterBefore(text, to)) || inner.some((other) => other.to === to)))
  if (!opens || !closes) return ''
  const forms = mark === '*' && !isInWord ? ['_', '*'] : [mark]
  return forms.find((form) => isFree(form, text.slice(from, to))) ?? ''
}

/** An address is not escaped, so a mark in it could end a style. */
const isFree = (mark: string, text: string): boolean =>
  !(text.match(/https?:\/\/[^\s<>]+/g) ?? []).some((address) => address.includes(mark[0] ?? ''))

/** Beyond an end of the text there is white space. */
const characterAt = (text: string, at: number): string => String.fromCodePoint(text.codePointAt(at) ?? 0x20)
const characterBefore = (text: string, at: number): string => Array.from(text.slice(Math.max(0, at - 2), at)).at(-1) ?? ' '

const longestRun = (code: string): number => Math.max(0, ...(code.match(/`+/g) ?? []).map(({ length }) => length))

function blockOfCode(code: string, language: string, { longFences, languages }: Dialect): string {
  const marks = '`'.repeat(longFences ? Math.max(3, longestRun(code) + 1) : 3)
  const body = longFences ? code : code.replaceAll('```', `\`${ZERO_WIDTH_SPACE}\`${ZERO_WIDTH_SPACE}\``)
  return `${marks}${languages && LANGUAGE.test(language) ? language : ''}\n${body}\n${marks}`
}

function spanOfCode(code: string, { longFences, protect }: Dialect): string {
  const run = longestRun(code)
  if (run === 0) return `\`${code}\``
  if (!longFences || code.includes('\n')) return `\`${code.replaceAll('`', protect === apart ? apart('`') : '\u02cb')}\``
  const marks = '`'.repeat(run + 1)
  return `${marks} ${code} ${marks}`
}

function escaped(text: string, from: number, to: number, { protect, inWords }: Dialect): string {
  const part = text.slice(from, to)
  return part.replace(SPECIAL, (found, index: number) => {
    const at = from + index
    const isLineStart = at === 0 || text[at - 1] === '\n'
    if (found.startsWith('http')) return found
    if (found.startsWith(' ')) return isLineStart ? NO_BREAK_SPACE.repeat(found.length) : found
    if (/^[>#+=-]/.test(found)) return isLineStart ? protect(found[0] ?? '') + found.slice(1) : found
    const [before, after] = [characterBefore(text, at), characterAt(text, at + 1)]
    if (found === '_' && WORD.test(before) && WORD.test(after)) return found
    if (/[*_~]/.test(found) && !isLineStart && /\s/.test(before) && /\s/.test(after)) return found
    if (!inWords && /[\\<[&|]/.test(found)) return found
    if (found === '\\' && protect === apart) return found
    if (found === '<' && !/[a-z/!?@#:&]/i.test(text[at + 1] ?? '')) return found
    return protect(found)
  })
}
