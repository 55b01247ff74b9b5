/** The words of an HTML mail. In time linear to its length, whatever a stranger sends. */
import { decodeEntities } from './entities.ts'

/** Elements whose content is no text. */
const SILENT = new Set(['script', 'style', 'head', 'title', 'template', 'svg', 'math'])
const BREAKS = new Set(
  'address article blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section table tr ul'.split(' '),
)
const CELLS = new Set(['td', 'th'])
const NAME_CHARS_MAX = 20

export function htmlToText(html: string): string {
  let text = ''
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    text += words(html.slice(at, open < 0 ? html.length : open))
    if (open < 0) break
    const { end, mark } = readMarkup(html, open)
    text += mark
    at = end
  }
  return tidy(text)
}

/** What stands at a `<`: where it ends, and what it leaves in the text. */
function readMarkup(html: string, open: number): { end: number; mark: string } {
  if (html.startsWith('<!--', open)) return { end: after(html, '-->', open + 4), mark: '' }
  const closing = html[open + 1] === '/'
  const from = open + (closing ? 2 : 1)
  const name = /^[a-z][a-z\d]*/i.exec(html.slice(from, from + NAME_CHARS_MAX))?.[0].toLowerCase()
  if (name === undefined) {
    const isMarkup = closing || html[open + 1] === '!' || html[open + 1] === '?'
    return isMarkup ? { end: after(html, '>', open), mark: '' } : { end: open + 1, mark: '<' }
  }
  const end = after(html, '>', open)
  if (!closing && SILENT.has(name)) return { end: afterElement(html, name, end), mark: '' }
  if (name === 'li' && !closing) return { end, mark: '\n- ' }
  return { end, mark: BREAKS.has(name) ? '\n' : CELLS.has(name) ? ' ' : '' }
}

/** What has no end goes on to the end of all. */
const after = (html: string, mark: string, from: number): number => {
  const found = html.indexOf(mark, from)
  return found < 0 ? html.length : found + mark.length
}

function afterElement(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}(?![a-z\\d])`, 'gi')
  close.lastIndex = from
  const found = close.exec(html)
  return found ? after(html, '>', found.index) : html.length
}

const words = (text: string): string => decodeEntities(text.replace(/[ \t\r\n\f]+/g, ' '))

const tidy = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.replace(/[ \u00a0]+/g, ' ').trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
