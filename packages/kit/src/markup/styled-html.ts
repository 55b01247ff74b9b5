/** Writes a styled text as HTML, for mail and for Matrix. */
import type { StyledText, TextStyle } from '@sluice/sdk'
import { withAddresses } from './styled-text.ts'

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const TAGS = { bold: 'strong', italic: 'em', strike: 'del', code: 'code', quote: 'blockquote' } as const
const BLOCKS = ['pre', 'blockquote']
const LANGUAGE = /^[\w+#.-]{1,20}$/

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character)

/** Spaces at the beginning of a line stay visible. */
const asLines = (text: string): string =>
  escaped(text)
    .replace(/\n +/g, (spaces) => `\n${'&nbsp;'.repeat(spaces.length - 1)}`)
    .replaceAll('\n', '<br>\n')

/** Returns HTML without anything but these tags: `a`, `blockquote`, `br`, `code`, `del`, `em`, `pre`, `strong`. */
export function writeHtml({ text, styles }: StyledText): string {
  const html = spanOf(text, 0, text.length, styles)
  // A block of its own brings its own line breaks.
  return html.replace(/(?:<br>\n)+/g, (breaks, at: number) => {
    const isBeside = BLOCKS.some((block) => html.endsWith(`</${block}>`, at) || html.startsWith(`<${block}>`, at + breaks.length))
    return isBeside ? '' : breaks
  })
}

function spanOf(text: string, from: number, to: number, styles: readonly TextStyle[]): string {
  let html = ''
  let at = from
  for (const [index, style] of styles.entries()) {
    if (style.from < at || style.to > to) continue
    const inner = styles.slice(index + 1).filter((other) => other.from >= style.from && other.to <= style.to)
    html += asLines(text.slice(at, style.from)) + elementOf(text, style, inner)
    at = style.to
  }
  return html + asLines(text.slice(at, to))
}

function elementOf(text: string, { kind, from, to, value = '' }: TextStyle, inner: readonly TextStyle[]): string {
  if (kind === 'pre') {
    const language = LANGUAGE.test(value) ? ` class="language-${escaped(value)}"` : ''
    return `<pre><code${language}>${escaped(text.slice(from, to))}\n</code></pre>`
  }
  const body = spanOf(text, from, to, inner)
  return kind === 'link' ? `<a href="${escaped(value)}">${body}</a>` : `<${TAGS[kind]}>${body}</${TAGS[kind]}>`
}

/** Returns the two forms of a mail. A text without styles has no HTML. */
export const mailTexts = (styled: StyledText): { readonly text: string; readonly html?: string } => ({
  text: withAddresses(styled),
  ...(styled.styles.length > 0 && { html: writeHtml(styled) }),
})
