/** Writes a message as its readers see it: names instead of ids, and forwarded messages, stickers and polls in words. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

/** Names of people, roles and channels that a message mentions by id. */
export interface Names {
  /** The bot's own user id. The text of a message omits mentions of it. */
  readonly botId: string
  /** True for a role of the bot, its managed role included; false for `@everyone`. */
  isOwnRole(guild: string, role: string): boolean
  /** The name of a role or a channel of a server; undefined while it is unknown. */
  nameOf(guild: string, id: string): string | undefined
}

/** A user, a role or a channel. */
const MENTION = /<(@!?|@&|#)(\d{1,20})>/g

/** Returns an empty text for a message that contains only files. */
export const textOf = (message: Members, guild: string, names: Names): string =>
  [bodyText(message, guild, names), ...forwardedIn(message).map((inner) => labelled('Forwarded message:', bodyText(inner, guild, names)))]
    .filter((part) => part !== '')
    .join('\n')

/** Returns the messages that a message forwards, as they were when they were forwarded. */
export const forwardedIn = ({ message_snapshots }: Members): Members[] =>
  list(message_snapshots).map((snapshot) => members(members(snapshot).message))

const bodyText = (message: Members, guild: string, names: Names): string =>
  [withNames(message, guild, names), ...list(message.sticker_items).map(stickerText), pollText(members(message.poll))]
    .filter((part) => part !== '')
    .join('\n')

function withNames({ content, mentions }: Members, guild: string, names: Names): string {
  const users = new Map(
    list(mentions)
      .map(members)
      .map((user) => [text(user.id), displayName(user)]),
  )
  return text(content)
    .replaceAll(MENTION, (mention, kind: string, id: string) => {
      if (kind.startsWith('@') && (id === names.botId || (kind === '@&' && names.isOwnRole(guild, id)))) return ''
      const name = kind === '@' || kind === '@!' ? users.get(id) : names.nameOf(guild, id)
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
  const questionText = text(members(question).text)
  if (questionText === '') return ''
  const choices = list(answers).map((answer) => choiceText(members(members(answer).poll_media)))
  return [`Poll: ${questionText}`, ...choices.filter((choice) => choice !== '').map((choice) => `- ${choice}`)].join('\n')
}

const choiceText = ({ emoji, text: label }: Members): string =>
  [text(members(emoji).name), text(label)].filter((part) => part !== '').join(' ')

const labelled = (label: string, body: string): string => (body === '' ? '' : `${label}\n${body}`)
