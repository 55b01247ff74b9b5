/** The names of a server's tools as the model sees them. */
import { createHash } from 'node:crypto'

const CHARS_MAX = 64
const DIGITS = 8

/**
 * Returns `mcp__<server>__<tool>`, at most 64 characters of `[A-Za-z0-9_-]`. A name that had to be changed for this ends with a hash of
 * the original one, so two tools of a server never share a name.
 */
export function toolName(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`
  if (plain.length <= CHARS_MAX && /^[\w-]+$/.test(plain)) return plain
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, DIGITS)
  return `${plain.replace(/[^\w-]/g, '_').slice(0, CHARS_MAX - DIGITS - 1)}_${hash}`
}
