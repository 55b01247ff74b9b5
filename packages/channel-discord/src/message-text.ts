/** Writes a message as its readers see it: names instead of ids, the words of programs, and stickers and polls. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { poll, type Thing, thing, unknownThing } from '@sluice/sdk'
import { wordsOfComponents, wordsOfEmbeds } from './words-of-programs.ts'

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

/** Returns the messages that a message forwards, as they were when they were forwarded. */
export const forwardedIn = ({ message_snapshots }: Members): Members[] =>
  list(message_snapshots).map((snapshot) => members(members(snapshot).message))

/** Content that has no words, and that only later releases of the platform may describe. */
const WITHOUT_WORDS = ['shared_client_theme']

/** Returns the stickers, the poll and the invitation of a message. */
export const thingsIn = (message: Members): readonly Thing[] => [
  ...list(message.sticker_items).map((sticker) => thing('sticker', text(members(sticker).name))),
  ...pollIn(members(message.poll)),
  ...(message.activity ? [thing('event', 'invitation to an activity', text(members(message.application).name))] : []),
  ...WITHOUT_WORDS.flatMap((member) => (message[member] ? [unknownThing(member)] : [])),
]

/** The words of a message. `quotedFrom`: where its embeds begin, which may be words of the pages that it links to. */
export interface Said {
  readonly text: string
  readonly quotedFrom?: number
}

/**
 * Returns the words of a message with names instead of ids; with its embeds and components, unless a person wrote it. Discord adds the
 * preview of each link as an embed like the embeds of a program, so the bot's own messages, which send none, are read without embeds.
 */
export function saidIn(message: Members, guild: string, names: Names): Said {
  const written = withNames(message, guild, names)
  if (isOfPerson(message)) return { text: written }
  const said = linesOf([written, ...wordsOfComponents(message)])
  const embeds = members(message.author).id === names.botId ? '' : linesOf(wordsOfEmbeds(message))
  if (embeds === '') return { text: said }
  return { text: linesOf([said, embeds]), quotedFrom: said === '' ? 0 : said.length + 1 }
}

const linesOf = (parts: readonly string[]): string => parts.filter((part) => part !== '').join('\n')

/** The embeds of a person's message are the previews of links. A message that is passed on names no author. */
const isOfPerson = ({ author, webhook_id }: Members): boolean =>
  author !== undefined && members(author).bot !== true && text(webhook_id) === ''

/** Returns the words of a message with names instead of ids; an empty text for a message that contains only files. */
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

export const displayName = ({ member, global_name, username }: Members): string =>
  text(members(member).nick) || text(global_name) || text(username)

function pollIn({ question, answers }: Members): readonly Thing[] {
  const asked = text(members(question).text)
  return asked === ''
    ? []
    : [
        poll(
          asked,
          list(answers).map((answer) => choiceText(members(members(answer).poll_media))),
        ),
      ]
}

const choiceText = ({ emoji, text: label }: Members): string =>
  [text(members(emoji).name), text(label)].filter((part) => part !== '').join(' ')
