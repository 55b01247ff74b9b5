/** Turns the article of a page, or the whole page where it has none, into text with headings, lists and links. */

export interface PageSource {
  readonly html: string
  /** The address of the page, against which its links are resolved. */
  readonly url: string
}

/** What a node of the parsed page offers here. */
interface PageNode {
  readonly nodeType: number
  readonly nodeName: string
  readonly textContent: string | null
  readonly childNodes: Iterable<PageNode>
  getAttribute?(name: string): string | null
}

const TEXT_NODE = 3
const ELEMENT_NODE = 1
/** Characters of an article below which the whole page says more. */
const ARTICLE_CHARS_MIN = 200
/** Elements whose content is not text for readers. */
const IGNORED = new Set('head title script style noscript template svg math head iframe object button select textarea'.split(' '))
const BLOCKS = new Set(
  'address article aside blockquote dd div dl dt fieldset figcaption figure footer form header hr main nav ol p pre section table tbody thead tr ul'.split(
    ' ',
  ),
)

export async function articleText({ html, url }: PageSource): Promise<string> {
  const [{ parseHTML }, { Readability }] = await Promise.all([import('linkedom'), import('@mozilla/readability')])
  const page = () => parseHTML(wholePage(html)).document
  const document = page()
  const title = (document.querySelector('title')?.textContent ?? '').trim().replace(/\s+/g, ' ')
  const whole = nodeText(document.documentElement, url)
  // The library changes the document that it reads.
  const article = new Readability(page(), { charThreshold: ARTICLE_CHARS_MIN }).parse()
  const body = article?.content ? nodeText(parseHTML(wholePage(article.content)).document.documentElement, url) : ''
  const text = body.length >= ARTICLE_CHARS_MIN || body.length >= whole.length / 2 ? body : whole
  return [...(title === '' || text.startsWith(`# ${title}\n`) ? [] : [`# ${title}`, '']), text].join('\n').trim()
}

/** The parser takes the first element of a page without `<html>` for the whole page. */
const wholePage = (html: string): string => (/<html[\s>]/i.test(html) ? html : `<!doctype html><html><body>${html}</body></html>`)

function nodeText(root: unknown, url: string): string {
  const parts: string[] = []
  if (root) write(root as PageNode, { parts, url, isPreformatted: false })
  return parts
    .join('')
    .split('\n')
    .map((line) => line.trimEnd().replace(/^ (?=\S)/, ''))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

interface Writing {
  readonly parts: string[]
  readonly url: string
  readonly isPreformatted: boolean
}

function write(node: PageNode, writing: Writing): void {
  const { parts } = writing
  if (node.nodeType === TEXT_NODE) {
    const text = node.textContent ?? ''
    parts.push(writing.isPreformatted ? text : text.replace(/\s+/g, ' '))
    return
  }
  if (node.nodeType !== ELEMENT_NODE) return
  const name = node.nodeName.toLowerCase()
  if (IGNORED.has(name)) return
  const inside = (more: Partial<Writing> = {}) => {
    for (const child of node.childNodes) write(child, { ...writing, ...more })
  }
  if (/^h[1-6]$/.test(name)) {
    parts.push(`\n\n${'#'.repeat(Number(name[1]))} `)
    inside()
    parts.push('\n\n')
  } else if (name === 'br') parts.push('\n')
  else if (name === 'li') {
    parts.push('\n- ')
    inside()
  } else if (name === 'td' || name === 'th') {
    inside()
    parts.push(' | ')
  } else if (name === 'img') {
    const alt = node.getAttribute?.('alt')?.trim()
    if (alt) parts.push(`[Image: ${alt}]`)
  } else if (name === 'a') {
    const target = linkTarget(node.getAttribute?.('href') ?? '', writing.url)
    const own: string[] = []
    inside({ parts: own })
    const text = own.join('').trim()
    if (text !== '') parts.push(target === undefined ? own.join('') : `[${text}](${target})`)
  } else if (BLOCKS.has(name)) {
    parts.push(name === 'tr' ? '\n' : '\n\n')
    inside(name === 'pre' ? { isPreformatted: true } : {})
    parts.push(name === 'tr' ? '' : '\n\n')
  } else inside()
}

/** Returns the absolute address of a link to another page; undefined for a place in the same page, and for other schemes. */
function linkTarget(href: string, url: string): string | undefined {
  if (href === '' || href.startsWith('#')) return undefined
  const target = URL.parse(href, url)
  return target && /^https?:$/.test(target.protocol) ? target.href : undefined
}
