/** The names by which the configuration and the API address the people who are asked or notified. */
import { ROWS } from '@sluice/sdk'

/** `dashboard`: every subscriber of events. The others are the targets of channels in the catalogue. */
export const TARGETS: readonly string[] = ['dashboard', ...ROWS.flatMap(([, { target }]) => target ?? [])]

const CONVERSATION = /^([a-z0-9][a-z0-9_-]*):(.+)$/s

/** Returns the conversation that a target such as `signal:+15550100` names: the channel, and the id of the conversation there. */
export function conversationOf(target: string): { readonly channel: string; readonly to: string } | undefined {
  const [, channel, to] = CONVERSATION.exec(target) ?? []
  return channel === undefined || to === undefined ? undefined : { channel, to }
}

export const isTarget = (name: string): boolean => TARGETS.includes(name) || conversationOf(name) !== undefined
