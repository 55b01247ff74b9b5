/** What somebody typed as a value: a TOML value, or bare text where a text is wanted. */

import { parseToml } from './toml/parse-toml.ts'
import type { Key } from './toml/schema-keys.ts'
import { dataOf, readDocument } from './toml/toml-document.ts'
import { formatLiteral } from './toml-literal.ts'

export interface GivenValue {
  readonly data: unknown
  /** As it will stand in the file. */
  readonly literal: string
}

/** `undefined` for what is neither. */
export async function readGiven(text: string, { shape }: Key): Promise<GivenValue | undefined> {
  const value = await readLiteral(text)
  const wantsText = shape.kind === 'text' || (shape.kind === 'choice' && shape.options.every((option) => typeof option === 'string'))
  if (wantsText && typeof value?.data !== 'string') return { data: text, literal: formatLiteral(text) }
  if (!value && shape.kind === 'any') return { data: text, literal: formatLiteral(text) }
  return value
}

async function readLiteral(text: string): Promise<GivenValue | undefined> {
  try {
    const source = `value = ${text}`
    await parseToml(source, '')
    const { keys } = await readDocument(source)
    const place = keys.get('value')
    // A text that brings lines of its own is no value.
    return place?.node && keys.size === 1 ? { data: dataOf(place), literal: source.slice(...place.node.range) } : undefined
  } catch {
    return undefined
  }
}
