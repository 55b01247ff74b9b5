/** Writes values and headers by `@iarna/toml`, and by our own rules where a reader would not see the same. */
import { printable } from '@sluice/sdk'
import { formatName } from '../toml/key-path.ts'
import { parseToml } from '../toml/parse-toml.ts'
import { formatLiteral } from './toml-literal.ts'

/** The library also writes digits in groups, lists over several lines, and characters that reorder or hide text. */
const isPlain = (text: string): boolean => !/\d_\d|\n/.test(text) && printable(text) === text

/** Returns a value as TOML. */
export async function writeValue(value: unknown): Promise<string> {
  const { default: toml } = await import('@iarna/toml')
  return written(
    () => toml.stringify.value(value as never),
    (text) => `value = ${text}`,
    { value },
    formatLiteral(value),
  )
}

/** Returns the header of a new section. */
export async function writeHeader(names: readonly string[]): Promise<string> {
  const { default: toml } = await import('@iarna/toml')
  const section = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), { key: true })
  const firstLine = (): string => toml.stringify(section as never).split('\n', 1)[0] ?? ''
  return written(firstLine, (text) => `${text}\nkey = true`, section, `[${names.map(formatName).join('.')}]`)
}

/** Returns what `write` returns if the strict parser reads the same from it; `own` otherwise. */
async function written(write: () => string, inFile: (text: string) => string, data: unknown, own: string): Promise<string> {
  try {
    const text = write()
    const read = isPlain(text) ? formatLiteral(await parseToml(inFile(text), '')) : undefined
    return read === formatLiteral(data) ? text : own
  } catch {
    return own
  }
}
