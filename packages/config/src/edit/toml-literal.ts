/** Formats values as TOML. */
import { formatName, formatText } from '../toml/key-path.ts'

/** Formats a text, number, boolean, date, list or table. */
export function formatLiteral(value: unknown): string {
  if (typeof value === 'string') return formatText(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return `[${value.map(formatLiteral).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const pairs = Object.entries(value).map(([name, child]) => `${formatName(name)} = ${formatLiteral(child)}`)
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
}
