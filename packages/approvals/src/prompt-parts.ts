/** What people are asked, as messages of a platform's length: what it is about, then how to answer, which is never cut off from the buttons. */

import { measure, reach, splitText } from '@sluice/kit'
import type { Approval, Channel } from '@sluice/sdk'

type Limits = Channel['limits']
type Asked = Pick<Approval, 'gate' | 'title' | 'message' | 'approveKeywords' | 'rejectKeywords'>

/** Texts of nothing else read the same on every platform: no platform takes them for markup, emoji or links. */
const NO_MARKUP = /^(?:[A-Za-z0-9 .,/='"\n-]|: )*$/
/** Of one code block. Counted as platforms with entities count, none of which cuts a block of this size in two. */
const BLOCK_CHARS_MAX = 2000
const ENTITY_CHARS = 5
const CONTINUES = '(This call goes on in the next message.)'

const quoted = (keywords: readonly string[]): string => keywords.map((keyword) => `\`${keyword}\``).join(', ')

/** `reject <your feedback>` shows one keyword: the others are spoken of where there are any. */
function instructions({ approveKeywords, rejectKeywords }: Asked): string {
  const [first = '', ...others] = rejectKeywords
  const also = others.length === 0 ? '' : ` (or ${quoted(others)})`
  const approve = approveKeywords.length === 1 ? 'Reply with' : 'Reply with one of:'
  return `${approve} ${quoted(approveKeywords)} to approve. Reply with \`${first}\` <your feedback> to reject${also}.`
}

/** The parts in order; the last one has the buttons. */
export const promptParts = (asked: Asked, limits: Limits): readonly string[] => endingWith(asked, instructions(asked), limits)

/** The last part again, with what became of it in place of the instructions. */
export function decidedPart(asked: Asked, verdict: string, limits: Limits): string {
  const last = promptParts(asked, limits).at(-1) ?? ''
  const ending = instructions(asked)
  const body = last.endsWith(ending) ? last.slice(0, -ending.length).trimEnd() : ''
  const [first = verdict] = splitText(verdict, limits)
  const whole = body === '' ? first : `${body}\n\n${first}`
  return measure(whole, limits.unit) <= limits.text ? whole : first
}

function endingWith(asked: Asked, ending: string, limits: Limits): readonly string[] {
  const parts = bodyParts(asked, limits)
  const last = parts.at(-1)
  const joined = last === undefined ? ending : `${last}\n\n${ending}`
  if (measure(joined, limits.unit) <= limits.text) return [...parts.slice(0, -1), joined]
  return [...parts, ...splitText(ending, limits)]
}

function bodyParts({ gate, title, message }: Asked, limits: Limits): readonly string[] {
  const text = [title, message].filter((part) => part.trim() !== '').join('\n\n')
  const isShort = measure(text, limits.unit) <= limits.text
  if (gate !== 'tool' || message === '' || (isShort && NO_MARKUP.test(message))) return splitText(text, limits)
  const block = (code: string): string => `\`\`\`\n${code}\n\`\`\``
  const around = measure([title, block(''), CONTINUES].join('\n\n'), limits.unit)
  // Every platform takes messages several times as long as the longest title.
  const room = Math.max(1, limits.text - around)
  const slices = slicesOf(message, { text: room, unit: limits.unit })
  return slices.map((code, at) => [...(at === 0 ? [title] : []), block(code), ...(at < slices.length - 1 ? [CONTINUES] : [])].join('\n\n'))
}

/** Slices that join to exactly `text`. No slice begins or ends with white space, which nobody would see there. */
function slicesOf(text: string, limits: Pick<Limits, 'text' | 'unit'>): readonly string[] {
  const slices: string[] = []
  for (let at = 0; at < text.length; ) {
    const start = at
    let end = Math.min(reach(text, start, limits), endOfBlock(text, start))
    while (end < text.length && end > start + 1 && !isCut(text, end)) end--
    slices.push(text.slice(start, end))
    at = end
  }
  return slices
}

/** Neither at white space nor between the halves of a character. */
const isCut = (text: string, at: number): boolean => !/\s|.[\udc00-\udfff]/.test(text.slice(at - 1, at + 1))

function endOfBlock(text: string, start: number): number {
  let chars = 0
  for (let at = start; at < text.length; at++) {
    chars += '&<>'.includes(text[at] ?? '') ? ENTITY_CHARS : 1
    if (chars > BLOCK_CHARS_MAX) return at
  }
  return text.length
}
