/**
 * The ids of our buttons. Other software that sends messages with the same number has buttons of its own, whose replies are ordinary
 * messages; the prefix tells them apart.
 */
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk/webhook'

const PREFIX = 'sluice:'

export const buttonId = (value: string): string => `${PREFIX}${value}`

/** Returns the pressed button of a message, or undefined unless it presses one of the bot's buttons. */
export function pressedIn({ type, interactive, context }: Members): Pick<Inbound, 'text' | 'pressed'> | undefined {
  const id = type === 'interactive' ? text(members(members(interactive).button_reply).id) : ''
  if (!id.startsWith(PREFIX)) return undefined
  return { text: '', pressed: { message: text(members(context).id), value: id.slice(PREFIX.length) } }
}
