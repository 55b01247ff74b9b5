/** Extracts the text of an HTML mail. A hostile mail costs no more than linear time. */

/** Elements whose content is not text. */
const IGNORED_ELEMENTS = new Set(['script', 'style', 'head', 'title', 'template', 'svg', 'math'])
/** Elements that start and end on a line of their own. */
const BLOCK_ELEMENTS = new Set(
  'address article blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section table tr ul'.split(' '),
)
const CELL_ELEMENTS = new Set(['td', 'th'])
const NAME_CHARS_MAX = 20
/** A `<` that begins an element, a comment or a declaration. Any other is text. */
const MARKUP = /<(?=[a-z/!?])/gi
/** Placeholders for the begin and the end of a quote until the text is split into lines. */
const [QUOTE, UNQUOTE] = ['\ue000', '\ue001']
const QUOTE_DEPTH_MAX = 5
/** The marks of quotes, which a mail must not contain. */
const MARKS = /[\ue000\ue001]/g

/** The names of U+00A0 to U+00FF, in order. */
const LATIN_1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
/** The named character references: Latin 1, and the ones that mail programs write. */
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...LATIN_1.split(' ').map((name, at): [string, string] => [name, String.fromCodePoint(0xa0 + at)]),
  ...Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", euro: '€', hellip: '…', bull: '•', trade: '™' }),
  ...Object.entries({ ndash: '–', mdash: '—', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', bdquo: '„', sbquo: '‚' }),
  ...Object.entries({ ensp: ' ', emsp: ' ', thinsp: ' ', zwnj: '', zwj: '', rarr: '→', larr: '←' }),
])
const REFERENCE = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z][a-z\d]{1,9}));/gi

/** The name of an attribute, and the quotation mark before its value if it has one. */
const ATTRIBUTE = /([^\s"'<>/=]{1,20})\s{0,3}=\s{0,3}(["']?)/g
/** A longer tag is read up to here. */
const TAG_CHARS_MAX = 2000
const ADDRESS_CHARS_MAX = 500
/** The addresses of further links are left out. */
const LINKS_MAX = 100

/**
 * Returns the text with one line for each block, with `>` before quoted lines, with the addresses of links that their words do not say, and
 * without scripts, styles and comments.
 */
export function htmlToText(html: string): string {
  let text = ''
  /** The text since the begin or the end of the last link. */
  let words = ''
  let at = 0
  /** The address of the link that is open. */
  let link: string | undefined
  let links = 0
  MARKUP.lastIndex = 0
  for (let open = MARKUP.exec(html); open; open = MARKUP.exec(html)) {
    const { end, replacement, link: begins } = readMarkup(html, open.index)
    words += plainText(html.slice(at, open.index))
    if (begins !== undefined) {
      text += link === undefined ? words : withAddress(words, link)
      words = ''
      link = begins && links < LINKS_MAX ? addressIn(html.slice(open.index, Math.min(end, open.index + TAG_CHARS_MAX))) : undefined
      if (link !== undefined) links += 1
    }
    words += replacement
    at = end
    MARKUP.lastIndex = end
  }
  return tidy(text + words + plainText(html.slice(at)))
}

/** Returns the address of a page in the tag of a link; undefined for any other address and for a long one. */
function addressIn(tag: string): string | undefined {
  const address = decodeEntities(hrefOf(tag)).trim()
  return address.length <= ADDRESS_CHARS_MAX && /^https?:\/\/[^\s\p{Cc}\p{Co}]+$/iu.test(address) ? address : undefined
}

/** Returns the value of the first `href`; an empty text without one that ends. */
function hrefOf(tag: string): string {
  ATTRIBUTE.lastIndex = 0
  for (let found = ATTRIBUTE.exec(tag); found; found = ATTRIBUTE.exec(tag)) {
    const [, name = '', quote = ''] = found
    const from = ATTRIBUTE.lastIndex
    const length = quote === '' ? tag.slice(from).search(/[\s>]/) : tag.indexOf(quote, from) - from
    if (length < 0) return ''
    if (name.toLowerCase() === 'href') return tag.slice(from, from + length)
    ATTRIBUTE.lastIndex = from + length + quote.length
  }
  return ''
}

/** Returns the words of a link with its address behind them, unless there are none, they say the address, or a quote begins or ends there. */
function withAddress(words: string, address: string): string {
  const isSaid = bareAddress(words).includes(bareAddress(address))
  return words.trim() === '' || /[\ue000\ue001]/.test(words) || isSaid ? words : `${words.trimEnd()} (${address})`
}

/** Returns an address without what people leave out of it. */
const bareAddress = (address: string): string =>
  address
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\/(?:www\.)?/, '')
    .replace(/\/$/, '')

interface Markup {
  readonly end: number
  /** The text that replaces it. */
  readonly replacement: string
  /** True for the begin of a link, false for its end. */
  readonly link?: boolean
}

/** Returns the markup that starts at a `<`. */
function readMarkup(html: string, open: number): Markup {
  if (html.startsWith('<!--', open)) return { end: after(html, '-->', open + 4), replacement: '' }
  const closing = html[open + 1] === '/'
  const from = open + (closing ? 2 : 1)
  const name = /^[a-z][a-z\d]*/i.exec(html.slice(from, from + NAME_CHARS_MAX))?.[0].toLowerCase()
  const end = after(html, '>', open)
  if (name === undefined) return { end, replacement: '' }
  if (name === 'a') return { end, replacement: '', link: !closing }
  if (!closing && IGNORED_ELEMENTS.has(name)) return { end: afterElement(html, name, end), replacement: '' }
  if (name === 'blockquote') return { end, replacement: `\n${closing ? UNQUOTE : QUOTE}\n` }
  if (name === 'li' && !closing) return { end, replacement: '\n- ' }
  return { end, replacement: BLOCK_ELEMENTS.has(name) ? '\n' : CELL_ELEMENTS.has(name) ? ' ' : '' }
}

/** Returns the index after the next `mark`, or the end of the text without one. */
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

const plainText = (text: string): string => decodeEntities(text.replace(/[ \t\r\n\f]+/g, ' ')).replace(MARKS, '')

/** Replaces character references by their characters. A reference with an unknown name stays as it is. */
export const decodeEntities = (text: string): string =>
  text.replace(REFERENCE, (reference, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return ENTITIES.get(name) ?? reference
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
    return isCharacter ? String.fromCodePoint(code) : '\ufffd'
  })

function tidy(text: string): string {
  let depth = 0
  const lines = text.split('\n').flatMap((raw) => {
    const line = raw.replace(/[ \u00a0]+/g, ' ').trim()
    if (line === QUOTE || line === UNQUOTE) {
      depth = Math.max(0, depth + (line === QUOTE ? 1 : -1))
      return ['']
    }
    return [line === '' ? '' : `${'> '.repeat(Math.min(depth, QUOTE_DEPTH_MAX))}${line}`]
  })
  return lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}
