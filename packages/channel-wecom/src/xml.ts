/** The XML of callbacks: one level of elements with text or CDATA. Sender and WeCom write no other XML, so no other is read. */

const DOCUMENT = /^\s*<xml>([\s\S]*)<\/xml>\s*$/
const ELEMENT = /\s*<([A-Za-z]\w{0,63})\s{0,20}(?:\/>|>((?:<!\[CDATA\[(?:[^\]]|\](?!\]>))*\]\]>|[^<])*)<\/\1\s{0,20}>)/y
const TEXT = /<!\[CDATA\[([\s\S]*?)\]\]>|([^<]+)/g
const NESTED = /\s*<([A-Za-z]\w{0,63})\s{0,20}>\s*<[A-Za-z]/y
const ELEMENTS_MAX = 64
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Returns the texts of the elements by name; undefined for any other document. Elements with elements in them are left out. */
export function elementsOf(document: string): ReadonlyMap<string, string> | undefined {
  const [, inner] = DOCUMENT.exec(document) ?? []
  if (inner === undefined) return undefined
  const found = new Map<string, string>()
  let at = 0
  for (let count = 0; count < ELEMENTS_MAX; count++) {
    if (inner.slice(at).trim() === '') return found
    ELEMENT.lastIndex = at
    const element = ELEMENT.exec(inner)
    if (element) {
      const [, name = '', content = ''] = element
      // A repeated element is ambiguous.
      if (found.has(name)) return undefined
      found.set(name, textOf(content))
      at = ELEMENT.lastIndex
      continue
    }
    const end = endOfNested(inner, at)
    if (end === undefined) return undefined
    at = end
  }
  return undefined
}

/** A text may have several parts with and without CDATA. */
const textOf = (content: string): string =>
  content.replace(TEXT, (_, data: string | undefined, plain: string = '') =>
    data !== undefined ? data : plain.replace(/&(amp|lt|gt|quot|apos);/g, (__, entity: string) => ENTITIES[entity] ?? ''),
  )

function endOfNested(inner: string, at: number): number | undefined {
  NESTED.lastIndex = at
  const name = NESTED.exec(inner)?.[1]
  const end = name === undefined ? -1 : inner.indexOf(`</${name}`, at)
  const close = end < 0 ? -1 : inner.indexOf('>', end)
  return close < 0 ? undefined : close + 1
}

/** Returns the document with these elements. */
export const xmlOf = (elements: Readonly<Record<string, string | number>>): string =>
  `<xml>${Object.entries(elements)
    .map(
      ([name, value]) =>
        `<${name}>${typeof value === 'number' ? value : `<![CDATA[${value.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`}</${name}>`,
    )
    .join('')}</xml>`
