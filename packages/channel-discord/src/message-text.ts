/** Writes a message as its readers see it: names instead of ids, and forwarded messages, stickers and polls in words. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

export interface Names {
  /** The bot's own user id. Its mentions are left out. */
  own(): string
  isOwnRole(guild: string, role: string): boolean
  /** The name of a role or a channel of a server. */
  nameOf(guild: string, id: string): string | undefined
}

/** A user, a role or a channel. */
const MENTION = /<(@!?|@&|#)(\d{1,20})>/g

/** Returns an empty text for a message of files alone. */
export const textOf = (message: Members, guild: string, names: Names): string =>
  [wordsOf(message, guild, names), ...forwardedIn(message).map((inner) => labelled('Forwarded message:', wordsOf(inner, guild, names)))]
    .filter((part) => part !== '')
    .join('\n')

/** The messages that a message forwards, as they were then. */
export const forwardedIn = ({ message_snapshots }: Members): Members[] =>
  list(message_snapshots).map((snapshot) => members(members(snapshot).message))

const wordsOf = (message: Members, guild: string, names: Names): string =>
  [withNames(message, guild, names), ...list(message.sticker_items).map(stickerText), pollText(members(message.poll))]
    .filter((part) => part !== '')
    .join('\n')

function withNames({ content, mentions }: Members, guild: string, { own, isOwnRole, nameOf }: Names): string {
  const users = new Map(
    list(mentions)
      .map(members)
      .map((user) => [text(user.id), displayName(user)]),
  )
  return text(content)
    .replaceAll(MENTION, (mention, kind: string, id: string) => {
      if (kind.startsWith('@') && (id === own() || (kind === '@&' && isOwnRole(guild, id)))) return ''
      const name = kind === '@' || kind === '@!' ? users.get(id) : nameOf(guild, id)
      return name ? `${kind === '#' ? '#' : '@'}${name}` : mention
    })
    .trim()
}

const displayName = ({ member, global_name, username }: Members): string =>
  text(members(member).nick) || text(global_name) || text(username)

function stickerText(sticker: unknown): string {
  const name = text(members(sticker).name)
  return name === '' ? '' : `Sticker: ${name}`
}

function pollText({ question, answers }: Members): string {
  const asked = text(members(question).text)
  if (asked === '') return ''
  const choices = list(answers).map((answer) => mediaText(members(members(answer).poll_media)))
  return [`Poll: ${asked}`, ...choices.filter((choice) => choice !== '').map((choice) => `- ${choice}`)].join('\n')
}

const mediaText = ({ emoji, text: words }: Members): string =>
  [text(members(emoji).name), text(words)].filter((part) => part !== '').join(' ')

const labelled = (label: string, words: string): string => (words === '' ? '' : `${label}\n${words}`)
