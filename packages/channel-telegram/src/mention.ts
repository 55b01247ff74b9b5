/** Decides whether a message in a group is addressed to the bot, and removes the mention from its text. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Addressed } from '@sluice/sdk'

export interface Bot {
  readonly id: string
  /** Without `@`. */
  readonly username: string
}

export interface AddressedText {
  readonly addressed: Exclude<Addressed, 'direct'>
  /** The text or caption without mentions of the bot, unless nothing else is in it. */
  readonly text: string
}

/** A range of UTF-16 units, `end` excluded. */
interface Span {
  readonly start: number
  readonly end: number
  readonly isCommand?: boolean
}

/** Returns the message that a message replies to, or an empty object. The first message of a topic counts as no reply target. */
export function repliedTo(message: Members): Members {
  const target = members(message.reply_to_message)
  return target.forum_topic_created === undefined ? target : {}
}

export function addressedText(message: Members, bot: Bot): AddressedText {
  const written = text(message.text) || text(message.caption)
  const entities = text(message.text) === '' ? message.caption_entities : message.entities
  const spans = list(entities)
    .flatMap((entity) => mentionSpan(members(entity), written, bot) ?? [])
    .toSorted((a, b) => b.start - a.start)
  const isReply = isBot(members(repliedTo(message).from), bot)
  const rest = spans.reduce(removeSpan, written).trim()
  const isCommand = spans.some((span) => span.isCommand)
  const addressed = isCommand ? 'command' : spans.length > 0 ? 'mention' : isReply ? 'reply' : 'overheard'
  return { addressed, text: spans.length === 0 || rest === '' ? written : rest }
}

/** Returns the part of the text that names the bot: a whole mention, or the end of a command such as `/status@bot`. */
function mentionSpan(entity: Members, written: string, bot: Bot): Span | undefined {
  const { type, offset, length } = entity
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) return undefined
  const [start, end] = [Number(offset), Number(offset) + Number(length)]
  if (start < 0 || end <= start || end > written.length) return undefined
  const marked = written.slice(start, end).toLowerCase()
  const name = `@${bot.username.toLowerCase()}`
  if (type === 'mention' && marked === name) return { start, end }
  if (type === 'text_mention' && isBot(members(entity.user), bot)) return { start, end }
  return type === 'bot_command' && marked.endsWith(name) ? { start: end - name.length, end, isCommand: true } : undefined
}

const isBot = ({ id }: Members, bot: Bot): boolean => typeof id === 'number' && String(id) === bot.id

/** Also removes the punctuation after a mention at the start. */
function removeSpan(written: string, { start, end }: Span): string {
  const before = written.slice(0, start)
  const after = written.slice(end)
  return before.trim() === '' ? after.replace(/^[\s,:]+/, '') : before.trimEnd() + after
}
