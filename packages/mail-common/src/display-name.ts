/** Reads the display name in a header with an address. */
import { decodeWords } from './encoded-words.ts'

/** Returns the name before the address; empty for a bare address. The sender chooses it, so that it proves nothing. */
export function displayName([value = '']: readonly string[]): string {
  const name = value.slice(0, Math.max(0, value.lastIndexOf('<'))).trim()
  const isQuoted = name.length > 1 && name.startsWith('"') && name.endsWith('"')
  return decodeWords(isQuoted ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name)
}
