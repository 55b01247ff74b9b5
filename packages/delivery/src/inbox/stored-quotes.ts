/** Finds the words that a message quotes, where its platform sends only the id of a message that arrived here. */
import { type Channel, hasWordsOfOthers, type Inbound, type OwnedStore, quotedPart, type StartedMessage, wordsOf } from '@sluice/sdk'
import { withMessage } from './read-message.ts'

/** The messages in which the words of a quote are looked for. */
const HISTORY_MAX = 50
const COMPARED_CHARS = 80

/** Returns the message with the words of the one that it quotes. */
export async function withStoredQuote(
  channels: readonly Channel[],
  owned: OwnedStore,
  { channel, message }: Pick<StartedMessage, 'channel' | 'message'>,
): Promise<Inbound> {
  const { account, sender, to, inReplyTo: id } = message
  if (id === undefined || message.quoted || message.quotedFrom !== undefined) return message
  const found = await owned.inbox.find(channel, { account, id })
  const whole = found && (await withMessage(channels, found)).message
  // Others may have joined the message: their words and files are not quoted.
  const quoted = whole?.pieces?.find((piece) => piece.id === id) ?? whole
  // An id from another conversation would show its words here.
  if (!quoted || quoted.to.to !== to.to) return message
  const by = quoted.sender === sender && !hasWordsOfOthers(quoted) ? 'sender' : undefined
  return { ...message, ...quotedPart({ id, by, author: { id: quoted.sender }, text: wordsOf(quoted), attachments: quoted.attachments }) }
}

/** Whether one of the newest messages of a conversation contains the words. */
export async function hasWords(owned: OwnedStore, session: string, words: string): Promise<boolean> {
  const history = await owned.sessions.history(session, HISTORY_MAX)
  // The beginning is enough, and long texts are searched for a long one slowly.
  const beginning = words.trim().slice(0, COMPARED_CHARS)
  return history.some(
    ({ role, content }) => role !== 'system' && content.some((part) => part.type === 'text' && part.text.includes(beginning)),
  )
}
