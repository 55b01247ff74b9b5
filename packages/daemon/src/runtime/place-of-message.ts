/** Says in a few words where and by whom a message was written, for the model. */
import { type Channel, frameSource, parseChatSession, parseSenderKey, type Standing } from '@sluice/sdk'

/** Names that platforms and senders choose are shortened to this length. */
const NAME_CHARS_MAX = 64

export interface WrittenMessage {
  readonly source: string
  readonly session: string | null
  readonly limited?: { readonly client: string; readonly standing: Standing; readonly name?: string } | undefined
}

export function placeOf(channels: readonly Pick<Channel, 'name' | 'limits'>[], { source, session, limited }: WrittenMessage): string {
  const standing = limited?.standing ?? 'operator'
  const chat = session === null ? undefined : parseChatSession(session)
  if (!chat) return `${source}, from ${aOrAn(standing)}`
  const { channel, conversation } = chat
  const sender = chat.sender ?? parseSenderKey(limited?.client ?? '')?.sender ?? ''
  const writer = limited?.name === undefined ? nameOf(sender) : `${nameOf(limited.name)} (${nameOf(sender)})`
  const room = conversation === sender ? 'direct' : `in ${nameOf(conversation)}`
  const limits = channels.find(({ name }) => name === channel)?.limits
  const shown = limits && `; shows text${limits.attachments ? ' and files' : ' only'}`
  return `${channel}, ${room}, from ${writer}, ${aOrAn(standing)}${shown ?? ''}`
}

const nameOf = (name: string): string => JSON.stringify(frameSource(name.slice(0, NAME_CHARS_MAX)))

const aOrAn = (standing: string): string =>
  standing === 'listed'
    ? 'a listed sender'
    : standing === 'unverified'
      ? 'an unverified sender'
      : `${/^[aeiou]/.test(standing) ? 'an' : 'a'} ${standing}`
