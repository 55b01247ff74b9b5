/** Whether a message of a chat answers a prompt: by quoting it, in its thread, or where there is neither, in its conversation. */
import type { ApprovalPrompt, Channel, Inbound } from '@sluice/sdk'

type Message = Pick<Inbound, 'account' | 'sender' | 'to' | 'inReplyTo'>
type Prompt = Pick<ApprovalPrompt, 'channel' | 'account' | 'to' | 'providerId'>

/** Platforms on which nobody quotes and nothing has threads are those that take no notifications. */
export const isPlain = ({ notifications }: Pick<Channel, 'notifications'>): boolean => notifications === undefined

/** The provider ids by which a message may name the prompt it answers. */
export const namedBy = ({ inReplyTo, to }: Message): readonly string[] =>
  [inReplyTo, to.thread, to.to].filter((id): id is string => id !== undefined)

/** It quotes the prompt, or stands in the thread that the prompt has opened; a thread may be a conversation of its own. */
export function isAnswerTo({ account, to, inReplyTo }: Message, channel: string, prompt: Prompt): boolean {
  const { providerId } = prompt
  if (providerId === null || prompt.channel !== channel || prompt.account !== account) return false
  return to.to === providerId || (isHere(to.to, prompt) && (inReplyTo === providerId || to.thread === providerId))
}

/**
 * Some platforms number messages anew in each conversation, so that it has to be the prompt's. Others put it into the id, in
 * their own spelling, whatever the configuration calls it.
 */
export const isHere = (conversation: string, { to, providerId }: Pick<Prompt, 'to' | 'providerId'>): boolean =>
  conversation === to.to || providerId?.startsWith(`${conversation}:`) === true

/**
 * It stands where the prompt was put, and nothing says that it is about something else: in the same thread, or on a plain
 * platform in the same conversation by the person whom the question concerns. Without a quote, not every text that begins with a keyword counts.
 */
export function isBeside(message: Message, channel: Pick<Channel, 'notifications' | 'normalise'>, person: string | null): boolean {
  const { to, sender, inReplyTo } = message
  if (inReplyTo !== undefined && inReplyTo !== to.thread) return false
  // The messenger's threads are rooms, where much is said beside a prompt; but there people can quote.
  if (!isPlain(channel)) return to.thread !== undefined && channel.notifications?.target !== 'messenger'
  const normal = (name: string): string => channel.normalise?.(name) ?? name
  // Of a conversation with one person alone the address is that person.
  return normal(sender) === normal(person ?? to.to)
}
