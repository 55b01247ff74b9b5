/** Writes a styled text as a block of rich text, in which no character is a mark. */
import type { StyledText, TextStyle } from '@sluice/sdk'

type Style = Readonly<Partial<Record<'bold' | 'italic' | 'strike' | 'code', true>>>
type Container = 'rich_text_section' | 'rich_text_preformatted' | 'rich_text_quote'

/** Characters that Slack reads as marks in a text outside of blocks. */
const MARKS = /[*_~`]|^>/m

/** Returns whether the text must be a block, so that its styles are shown and its characters arrive as they are. */
export const needsRichText = ({ text, styles }: StyledText): boolean => styles.length > 0 || MARKS.test(text)

export function richText({ text, styles }: StyledText): object {
  const blocks = styles.filter(({ kind }) => kind === 'pre' || kind === 'quote')
  const elements: object[] = []
  let at = 0
  const add = (type: Container, from: number, to: number): void => {
    const parts = partsOf(text, from, to, styles)
    if (parts.length > 0) elements.push({ type, elements: parts })
  }
  for (const { kind, from, to } of blocks) {
    if (from < at) continue
    add('rich_text_section', ...withoutNewlines(text, at, from))
    add(kind === 'pre' ? 'rich_text_preformatted' : 'rich_text_quote', from, to)
    at = to
  }
  add('rich_text_section', ...withoutNewlines(text, at, text.length))
  return { type: 'rich_text', elements }
}

/** A block of code and a quote begin and end their own lines. */
function withoutNewlines(text: string, start: number, end: number): [from: number, to: number] {
  let [from, to] = [start, end]
  while (from > 0 && from < to && text[from] === '\n') from++
  while (to > from && text[to - 1] === '\n' && to < text.length) to--
  return [from, to]
}

/** Returns the parts between two places, each with all its styles. */
function partsOf(text: string, from: number, to: number, styles: readonly TextStyle[]): object[] {
  const within = styles.filter((style) => style.to > from && style.from < to && style.kind !== 'pre' && style.kind !== 'quote')
  const cuts = [...new Set([from, to, ...within.flatMap((style) => [style.from, style.to])])].filter((at) => at >= from && at <= to)
  cuts.sort((a, b) => a - b)
  return cuts.slice(1).flatMap((end, index) => {
    const start = cuts[index] ?? from
    const covering = within.filter((style) => style.from <= start && style.to >= end)
    const style: Style = Object.fromEntries(covering.filter(({ kind }) => kind !== 'link').map(({ kind }) => [kind, true]))
    const styled = Object.keys(style).length > 0 && { style }
    const url = covering.find(({ kind }) => kind === 'link')?.value
    const words = text.slice(start, end)
    if (words === '') return []
    return [url === undefined ? { type: 'text', text: words, ...styled } : { type: 'link', url, text: words, ...styled }]
  })
}
