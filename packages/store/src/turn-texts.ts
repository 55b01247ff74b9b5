/** What was said in a turn stands in its session's messages: the turn's own row repeats it only where it stands nowhere else. */
import type { ModelMessage } from '@sluice/sdk'

/** The text of the first thing a person said. */
export const inputIn = (messages: readonly ModelMessage[]): string | undefined => textOf(messages.find(({ role }) => role === 'user'))

/** The text of the last thing the model said. */
export const responseIn = (messages: readonly ModelMessage[]): string | undefined =>
  textOf(messages.findLast(({ role }) => role === 'assistant'))

function textOf(message: ModelMessage | undefined): string | undefined {
  if (!message || message.role === 'system') return undefined
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}
