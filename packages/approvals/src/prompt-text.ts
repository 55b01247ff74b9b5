/** The text of a prompt in messages of a platform's length: the question, then the instructions, in one message with the buttons. */

import { measure, reach, splitText } from '@sluice/kit'
import { type Approval, type Channel, type GatewayTexts, gatewayText } from '@sluice/sdk'

type Limits = Channel['limits']
type Asked = Pick<Approval, 'gate' | 'title' | 'message' | 'approveKeywords' | 'rejectKeywords'>

/** A text of only these characters reads the same on every platform: none takes it for markup, emoji or links. */
const NO_MARKUP = /^(?:[A-Za-z0-9 .,/='"\n-]|: )*$/
/** The length of a code block, counted as platforms with entities count. None of them splits a block of this length. */
const BLOCK_CHARS_MAX = 2000
const ENTITY_CHARS = 5

/** Returns the messages in order; the last one gets the buttons. */
export const promptParts = (asked: Asked, limits: Limits, texts: GatewayTexts): readonly string[] => {
  const ending = instructions(asked, texts)
  const parts = bodyParts(asked, limits, texts)
  const last = parts.at(-1)
  const joined = last === undefined ? ending : `${last}\n\n${ending}`
  if (measure(joined, limits.unit) <= limits.text) return [...parts.slice(0, -1), joined]
  return [...parts, ...splitText(ending, limits)]
}

/** Returns the last message with the decision instead of the instructions. */
export function decidedPart(asked: Asked, verdict: string, limits: Limits, texts: GatewayTexts): string {
  const last = promptParts(asked, limits, texts).at(-1) ?? ''
  const ending = instructions(asked, texts)
  const body = last.endsWith(ending) ? last.slice(0, -ending.length).trimEnd() : ''
  const [first = verdict] = splitText(verdict, limits)
  const whole = body === '' ? first : `${body}\n\n${first}`
  return measure(whole, limits.unit) <= limits.text ? whole : first
}

const quoted = (keywords: readonly string[]): string => keywords.map((keyword) => `\`${keyword}\``).join(', ')

/** `reject <your feedback>` shows the first keyword; the others are listed after it. */
function instructions({ approveKeywords, rejectKeywords }: Asked, texts: GatewayTexts): string {
  const [first = '', ...others] = rejectKeywords
  const approve = approveKeywords.length === 1 ? 'approve_with' : 'approve_with_one_of'
  const reject = others.length === 0 ? 'reject_with' : 'reject_with_one_of'
  return [
    gatewayText(approve, texts, { keywords: quoted(approveKeywords) }),
    gatewayText(reject, texts, { keyword: quoted([first]), others: quoted(others) }),
  ].join(' ')
}

/** Returns title and message. A tool call is in code blocks if a platform could change or hide parts of it. */
function bodyParts({ gate, title, message }: Asked, limits: Limits, texts: GatewayTexts): readonly string[] {
  const continues = gatewayText('call_continues', texts)
  const text = [title, message].filter((part) => part.trim() !== '').join('\n\n')
  const isShort = measure(text, limits.unit) <= limits.text
  if (gate !== 'tool' || message === '' || (isShort && NO_MARKUP.test(message))) return splitText(text, limits)
  const block = (code: string): string => `\`\`\`\n${code}\n\`\`\``
  const around = measure([title, block(''), continues].join('\n\n'), limits.unit)
  // The limit of every platform is several times the longest title.
  const room = Math.max(1, limits.text - around)
  const slices = slicesOf(message, { text: room, unit: limits.unit })
  return slices.map((code, at) => [...(at === 0 ? [title] : []), block(code), ...(at < slices.length - 1 ? [continues] : [])].join('\n\n'))
}

/** Returns slices that join to exactly `text`. No slice begins or ends with white space, which would not be visible there. */
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

/** Returns whether the text may be cut here: neither at white space nor between the halves of a character. */
const isCut = (text: string, at: number): boolean => !/\s|.[\udc00-\udfff]/.test(text.slice(at - 1, at + 1))

function endOfBlock(text: string, start: number): number {
  let chars = 0
  for (let at = start; at < text.length; at++) {
    chars += '&<>'.includes(text[at] ?? '') ? ENTITY_CHARS : 1
    if (chars > BLOCK_CHARS_MAX) return at
  }
  return text.length
}
