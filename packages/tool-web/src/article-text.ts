/** Turns the article of a page, or the whole page where it has none, into text with headings, lists and links. */

export interface PageSource {
  readonly html: string
  /** The address of the page, against which its links are resolved. */
  readonly url: string
}

/** The members of a node of the parsed page that this file uses. */
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
/** Replace line breaks and spaces of code, which stay as they are. */
const CODE_BREAK = '\ue000'
const CODE_SPACE = '\ue001'
/** A longer cell of a table keeps its lines. */
const CELL_CHARS_MAX = 500
/** Elements whose content is not text for readers. */
const IGNORED = new Set('head title script style noscript template svg math head iframe object button select textarea'.split(' '))
const BLOCKS = new Set(
  'address article aside blockquote dd div dl dt fieldset figcaption figure footer form header hr main nav p pre section table tbody thead tr'.split(
    ' ',
  ),
)

export async function articleText({ html, url }: PageSource): Promise<string> {
  // A bundle shows only the default export of a CommonJS package to a dynamic import.
  const [{ parseHTML }, { default: readability }] = await Promise.all([import('linkedom'), import('@mozilla/readability')])
  const page = () => parseHTML(wholePage(html)).document
  const document = page()
  const title = (document.querySelector('title')?.textContent ?? '').trim().replace(/\s+/g, ' ')
  const base = URL.parse(document.querySelector('base')?.getAttribute('href') ?? '', url)?.href ?? url
  const whole = nodeText(document.documentElement, base)
  // The library changes the document that it reads.
  const article = new readability.Readability(page(), { charThreshold: ARTICLE_CHARS_MIN }).parse()
  const body = article?.content ? nodeText(parseHTML(wholePage(article.content)).document.documentElement, base) : ''
  const shown = body.length >= ARTICLE_CHARS_MIN || body.length >= whole.length / 2 ? body : whole
  const text = shown === '' && /<script/i.test(html) ? withoutScripts(document) : shown
  return [...(title === '' || text.startsWith(`# ${title}\n`) ? [] : [`# ${title}`, '']), text].join('\n').trim()
}

/** Describes a page whose text is written by its scripts, which do not run here. */
function withoutScripts(document: { querySelector(selector: string): { getAttribute(name: string): string | null } | null }): string {
  const meta = document.querySelector('meta[name="description"]') ?? document.querySelector('meta[property="og:description"]')
  const description = (meta?.getAttribute('content') ?? '').trim().replace(/\s+/g, ' ')
  return [...(description === '' ? [] : [description, '']), '[This page shows its text only to a browser that runs its scripts]'].join('\n')
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
    .replaceAll(CODE_BREAK, '\n')
    .replaceAll(CODE_SPACE, ' ')
}

interface Writing {
  readonly parts: string[]
  readonly url: string
  readonly isPreformatted: boolean
  /** The list whose items are written. Nested lists stand directly below the words of their item. */
  readonly list?: { next: number | undefined }
}

const inCode = (text: string): string => text.replaceAll('\n', CODE_BREAK).replaceAll(' ', CODE_SPACE)

function write(node: PageNode, writing: Writing): void {
  const { parts } = writing
  if (node.nodeType === TEXT_NODE) {
    const text = node.textContent ?? ''
    parts.push(writing.isPreformatted ? inCode(text) : text.replace(/\s+/g, ' '))
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
  } else if (name === 'br') parts.push(writing.isPreformatted ? CODE_BREAK : '\n')
  else if (name === 'ul' || name === 'ol') {
    const start = Number(node.getAttribute?.('start') ?? '') || 1
    const around = writing.list ? '\n' : '\n\n'
    parts.push(around)
    inside({ list: { next: name === 'ol' ? start : undefined } })
    parts.push(around)
  } else if (name === 'li') {
    const { list } = writing
    const marker = list?.next === undefined ? '- ' : `${list.next++}. `
    const item = partsInside(inside)
      .trim()
      .replace(/\n+/g, `\n${' '.repeat(marker.length)}`)
    parts.push(`\n${marker}${item}`)
  } else if (name === 'td' || name === 'th') {
    const cell = partsInside(inside)
    // A longer cell is a part of the layout of the page.
    parts.push(cell.length <= CELL_CHARS_MAX ? cell.trim().replace(/\s+/g, ' ') : cell, ' | ')
  } else if (name === 'img') {
    const alt = node.getAttribute?.('alt')?.trim()
    if (alt) parts.push(`[Image: ${alt}]`)
  } else if (name === 'a') {
    const target = linkTarget(node.getAttribute?.('href') ?? '', writing.url)
    const own = partsInside(inside)
    const text = own.trim().replace(/^#+ /, '').replace(/\s+/g, ' ')
    if (text !== '') parts.push(target === undefined ? own : `[${text}](${target})`)
  } else if (BLOCKS.has(name)) {
    const fence = name === 'pre' && !writing.isPreformatted
    parts.push(name === 'tr' ? '\n' : '\n\n')
    if (fence) parts.push('```\n', withoutBreaks(partsInside(inside, { isPreformatted: true })), '\n```')
    else inside()
    parts.push(name === 'tr' ? '' : '\n\n')
  } else inside()
}

/** Returns code without the line breaks at its ends. */
function withoutBreaks(code: string): string {
  let [from, to] = [0, code.length]
  while (code[from] === CODE_BREAK) from++
  while (to > from && code[to - 1] === CODE_BREAK) to--
  return code.slice(from, to)
}

/** Returns what is inside of a node. */
function partsInside(inside: (more: Partial<Writing>) => void, more: Partial<Writing> = {}): string {
  const parts: string[] = []
  inside({ ...more, parts })
  return parts.join('')
}

/** Returns the absolute address of a link to another page; undefined for a place in the same page, and for other schemes. */
function linkTarget(href: string, url: string): string | undefined {
  if (href === '' || href.startsWith('#')) return undefined
  const target = URL.parse(href, url)
  return target && /^https?:$/.test(target.protocol) ? target.href : undefined
}
