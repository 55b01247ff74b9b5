/** Counting text as a platform counts it. */
import type { Channel } from '@sluice/sdk'

type Limits = Pick<Channel['limits'], 'text' | 'unit'>

/** A lone surrogate goes out as U+FFFD, which has three bytes. */
function cost(codePoint: number, unit: Limits['unit']): number {
  if (unit === 'codepoint') return 1
  if (unit === 'utf16') return codePoint > 0xffff ? 2 : 1
  if (codePoint < 0x80) return 1
  if (codePoint < 0x800) return 2
  return codePoint > 0xffff ? 4 : 3
}

/**
 * Returns the end of the longest text from `from` on that `limits` allow. It lies between code points and after at least one, so that
 * a loop over the text always ends. Reads the text only up to that end.
 */
export function reach(text: string, from: number, limits: Limits): number {
  let at = from
  for (let used = 0; at < text.length; ) {
    const codePoint = text.codePointAt(at) ?? 0
    used += cost(codePoint, limits.unit)
    if (used > limits.text && at > from) break
    at += codePoint > 0xffff ? 2 : 1
  }
  return at
}

export function measure(text: string, unit: Limits['unit']): number {
  let sum = 0
  for (const character of text) sum += cost(character.codePointAt(0) ?? 0, unit)
  return sum
}
