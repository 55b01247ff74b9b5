/** Whether a message in a group is meant for the bot, and its text without the mention. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

/** The bot, as the API names it. */
export interface Bot {
  readonly id: string
  /** Without `@`. */
  readonly username: string
}

export interface Heard {
  /** It mentions the bot, or answers it. */
  readonly isAddressed: boolean
  readonly text: string
}

interface Span {
  readonly from: number
  readonly to: number
}

/** The message it answers, empty if it answers none: in a topic, the message that opened it only seems to be answered. */
export function answeredIn(message: Members): Members {
  const answered = members(message.reply_to_message)
  return answered.forum_topic_created === undefined ? answered : {}
}

/** Offsets are in UTF-16 units, as in our texts. */
export function hear(message: Members, bot: Bot): Heard {
  const words = text(message.text) || text(message.caption)
  const entities = text(message.text) === '' ? message.caption_entities : message.entities
  const spans = list(entities)
    .flatMap((entity) => spanOf(members(entity), words, bot) ?? [])
    .toSorted((a, b) => b.from - a.from)
  const isAnswer = String(members(answeredIn(message).from).id) === bot.id
  const rest = spans.reduce(without, words).trim()
  return { isAddressed: isAnswer || spans.length > 0, text: spans.length === 0 || rest === '' ? words : rest }
}

/** Where in the text the entity names the bot: all of a mention, or the end of a command such as `/status@bot`. */
function spanOf(entity: Members, words: string, { id, username }: Bot): Span | undefined {
  const { type, offset, length } = entity
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) return undefined
  const [from, to] = [Number(offset), Number(offset) + Number(length)]
  if (from < 0 || to <= from || to > words.length) return undefined
  const named = words.slice(from, to).toLowerCase()
  const name = `@${username.toLowerCase()}`
  if (type === 'mention' && named === name) return { from, to }
  if (type === 'text_mention' && String(members(entity.user).id) === id) return { from, to }
  return type === 'bot_command' && named.endsWith(name) ? { from: to - name.length, to } : undefined
}

/** What follows a name that stands first, such as a comma, goes with it. */
function without(words: string, { from, to }: Span): string {
  const before = words.slice(0, from)
  const after = words.slice(to)
  return before.trim() === '' ? after.replace(/^[\s,:]+/, '') : before.trimEnd() + after
}
