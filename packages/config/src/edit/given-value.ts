/** Reads a value that an operator typed: a TOML value, or plain text for a key that is a text. */

import { parseToml } from '../toml/parse-toml.ts'
import type { Key } from '../toml/schema-keys.ts'
import { dataOf, readDocument } from '../toml/toml-document.ts'
import { formatLiteral } from './toml-literal.ts'
import { writeValue } from './write-toml.ts'

export interface GivenValue {
  readonly data: unknown
  /** The value as TOML. */
  readonly literal: string
}

/** Resolves to `undefined` when the text is neither. */
export async function readGiven(text: string, { shape }: Key): Promise<GivenValue | undefined> {
  const value = await readLiteral(text)
  const wantsText = shape.kind === 'text' || (shape.kind === 'choice' && shape.options.every((option) => typeof option === 'string'))
  if (wantsText && typeof value?.data !== 'string') return { data: text, literal: await writeValue(text) }
  if (!value && shape.kind === 'any') return { data: text, literal: await writeValue(text) }
  return value
}

/** A character for private use, in the place of a replacement character: in a file, that would mean another encoding. */
const STAND_IN = '\u{10fffd}'

async function readLiteral(text: string): Promise<GivenValue | undefined> {
  if (text.includes('\ufffd') && !text.includes(STAND_IN)) {
    const found = await readLiteral(text.replaceAll('\ufffd', STAND_IN))
    return found && readLiteral(formatLiteral(found.data).replaceAll(STAND_IN, '\\ufffd'))
  }
  try {
    const source = `value = ${text}`
    await parseToml(source, '')
    const { keys } = await readDocument(source)
    const place = keys.get('value')
    // A text with further lines is not a single value.
    return place?.node && keys.size === 1 ? { data: dataOf(place), literal: source.slice(...place.node.range) } : undefined
  } catch {
    return undefined
  }
}
