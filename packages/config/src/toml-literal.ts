/** Values as TOML writes them. */
import { formatName } from './toml/key-path.ts'

/** A value of the file's kinds: text, number, boolean, date, list, table. */
export function formatLiteral(value: unknown): string {
  if (typeof value === 'string') return formatText(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return `[${value.map(formatLiteral).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const pairs = Object.entries(value).map(([name, child]) => `${formatName(name)} = ${formatLiteral(child)}`)
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
}

/** JSON's escapes are TOML's, but JSON leaves bare a control character, and what bytes in another encoding are read as. */
const formatText = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f').replaceAll('\ufffd', '\\ufffd')
