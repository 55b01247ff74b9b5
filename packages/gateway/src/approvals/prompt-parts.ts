/** What people are asked, as messages of a platform's length: what it is about, then how to answer, which is never cut off from the buttons. */
import type { Approval, Channel } from '@sluice/sdk'
import { splitText } from '../delivery/split-text.ts'
import { measure } from '../delivery/split-text-units.ts'

type Limits = Channel['limits']
type Asked = Pick<Approval, 'title' | 'message' | 'approveKeywords' | 'rejectKeywords'>

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

function endingWith({ title, message }: Asked, ending: string, limits: Limits): readonly string[] {
  const body = [title, message].filter((text) => text.trim() !== '').join('\n\n')
  const parts = splitText(body, limits)
  const last = parts.at(-1)
  const joined = last === undefined ? ending : `${last}\n\n${ending}`
  if (measure(joined, limits.unit) <= limits.text) return [...parts.slice(0, -1), joined]
  return [...parts, ...splitText(ending, limits)]
}
