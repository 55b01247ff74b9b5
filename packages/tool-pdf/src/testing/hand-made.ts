/** Builds PDFs object by object, so that a test can make any part of them invalid. */

export interface HandMade {
  /** The text of each page. An empty string makes a page without text. */
  readonly pages?: readonly string[]
  /** Replaces objects by number: 1 is the catalog, 2 the page tree; from 3 on, each page is followed by its content. */
  readonly objects?: Readonly<Record<number, string | Uint8Array>>
  /** Further entries of the trailer. */
  readonly trailer?: string
}

/** Returns a complete PDF with a correct cross-reference table. */
export function handMade({ pages = ['hello'], objects = {}, trailer = '' }: HandMade = {}): Buffer {
  const font = 3 + 2 * pages.length
  const kids = pages.map((_, at) => `${3 + 2 * at} 0 R`).join(' ')
  const bodies = new Map<number, string | Uint8Array>([
    [1, '<</Type /Catalog /Pages 2 0 R>>'],
    [2, `<</Type /Pages /Kids [${kids}] /Count ${pages.length}>>`],
    ...pages.flatMap((text, at): [number, string | Uint8Array][] => [
      [3 + 2 * at, pageObject(4 + 2 * at, font)],
      [4 + 2 * at, streamObject(text === '' ? '' : `BT /F1 12 Tf 10 20 Td (${text}) Tj ET`)],
    ]),
    [font, '<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>'],
    ...Object.entries(objects).map(([number, body]): [number, string | Uint8Array] => [Number(number), body]),
  ])
  return assemble(bodies, trailer)
}

/** The page is very wide, because the library ignores text outside the page. */
const pageObject = (content: number, font: number): string =>
  `<</Type /Page /Parent 2 0 R /MediaBox [0 0 9000000 800] /Contents ${content} 0 R /Resources <</Font <</F1 ${font} 0 R>>>>>>`

/** `entries` are added to the stream's dictionary, which already has the length. */
export const streamObject = (data: string | Uint8Array, entries = ''): Buffer => {
  const bytes = Buffer.from(data)
  return Buffer.concat([Buffer.from(`<<${entries} /Length ${bytes.length}>> stream\n`), bytes, Buffer.from('\nendstream')])
}

function assemble(bodies: ReadonlyMap<number, string | Uint8Array>, trailer: string): Buffer {
  const parts = [Buffer.from('%PDF-1.7\n')]
  const offsets = new Map<number, number>()
  let length = parts[0]?.length ?? 0
  for (const [number, body] of bodies) {
    offsets.set(number, length)
    const part = Buffer.concat([Buffer.from(`${number} 0 obj\n`), Buffer.from(body), Buffer.from('\nendobj\n')])
    parts.push(part)
    length += part.length
  }
  const size = [...bodies.keys()].reduce((most, number) => Math.max(most, number), 0) + 1
  const rows = Array.from({ length: size }, (_, number) => {
    const at = offsets.get(number)
    return at === undefined ? '0000000000 65535 f \n' : `${String(at).padStart(10, '0')} 00000 n \n`
  })
  parts.push(
    Buffer.from(`xref\n0 ${size}\n${rows.join('')}trailer\n<</Root 1 0 R /Size ${size} ${trailer}>>\nstartxref\n${length}\n%%EOF\n`),
  )
  return Buffer.concat(parts)
}
