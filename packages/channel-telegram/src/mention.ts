/** Reads the words of a message, decides whether one in a group is addressed to the bot, and removes the mention from its text. */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Addressed } from '@sluice/sdk'
import { richText } from './rich-message.ts'

export interface Bot {
  readonly id: string
  /** Without `@`. */
  readonly username: string
}

const QUOTES: readonly string[] = ['blockquote', 'expandable_blockquote']

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
  /** What is added at the start of an empty range. */
  readonly added?: string
}

/** Returns the message that a message replies to, or an empty object. The first message of a topic counts as no reply target. */
export function repliedTo(message: Members): Members {
  const target = members(message.reply_to_message)
  return target.forum_topic_created === undefined ? target : {}
}

/** Returns the text or caption, with the address behind each word that is a link, and with a mark before each line of a quote. */
export const wordsOf = (message: Members): string => {
  const written = writtenIn(message)
  return additionsIn(message, written).toSorted(lastFirst).reduce(edited, written)
}

/** The words of the part of a message that the sender marked. */
export const markedWords = ({ text: words, entities }: Members): string => wordsOf({ text: words, entities })

export function addressedText(message: Members, bot: Bot): AddressedText {
  const written = writtenIn(message)
  const spans = entitiesOf(message).flatMap((entity) => mentionSpan(entity, written, bot) ?? [])
  const isReply = isBot(members(repliedTo(message).from), bot)
  const rest = [...spans, ...additionsIn(message, written)].toSorted(lastFirst).reduce(edited, written).trim()
  const isCommand = spans.some((span) => span.isCommand)
  const addressed = isCommand ? 'command' : spans.length > 0 ? 'mention' : isReply ? 'reply' : 'overheard'
  return { addressed, text: spans.length === 0 || rest === '' ? wordsOf(message) : rest }
}

/** Whether a message begins with a command that names another bot, such as `/stop@other_bot`. */
export function isForOtherBot(message: Members, bot: Bot): boolean {
  const written = writtenIn(message)
  const command = entitiesOf(message).find(({ type, offset }) => type === 'bot_command' && offset === 0)
  if (!command || mentionSpan(command, written, bot)) return false
  return written.slice(0, spanOf(command, written)?.end ?? 0).includes('@')
}

const writtenIn = (message: Members): string => text(message.text) || text(message.caption) || richText(message.rich_message)

const entitiesOf = (message: Members): readonly Members[] =>
  list(text(message.text) === '' ? message.caption_entities : message.entities).map(members)

/** Of two ranges with one start, the first one in the list is edited first. */
const lastFirst = (a: Span, b: Span): number => b.start - a.start

const additionsIn = (message: Members, written: string): readonly Span[] => [
  ...linksIn(message, written),
  ...quoteMarksIn(message, written),
]

/** Returns the starts of the lines of quotes: the words in them are those of others. */
const quoteMarksIn = (message: Members, written: string): Span[] =>
  entitiesOf(message).flatMap((entity) => {
    const span = QUOTES.includes(text(entity.type)) ? spanOf(entity, written) : undefined
    if (!span) return []
    const breaks = [...written.slice(span.start, span.end).trimEnd().matchAll(/\n/g)].map(({ index }) => span.start + index + 1)
    return [span.start, ...breaks].map((start) => ({ start, end: start, added: '> ' }))
  })

/** Returns the links whose addresses are not in the text. */
const linksIn = (message: Members, written: string): Span[] =>
  entitiesOf(message).flatMap((entity) => {
    const span = entity.type === 'text_link' ? spanOf(entity, written) : undefined
    const address = text(entity.url)
    return span && address !== '' && written.slice(span.start, span.end) !== address
      ? [{ start: span.end, end: span.end, added: ` (${address})` }]
      : []
  })

function spanOf({ offset, length }: Members, written: string): Span | undefined {
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) return undefined
  const [start, end] = [Number(offset), Number(offset) + Number(length)]
  return start < 0 || end <= start || end > written.length ? undefined : { start, end }
}

/** Returns the part of the text that names the bot: a whole mention, or the end of a command such as `/status@bot`. */
function mentionSpan(entity: Members, written: string, bot: Bot): Span | undefined {
  const { type } = entity
  const span = spanOf(entity, written)
  if (!span) return undefined
  const { start, end } = span
  const marked = written.slice(start, end).toLowerCase()
  const name = `@${bot.username.toLowerCase()}`
  if (type === 'mention' && marked === name) return { start, end }
  if (type === 'text_mention' && isBot(members(entity.user), bot)) return { start, end }
  return type === 'bot_command' && marked.endsWith(name) ? { start: end - name.length, end, isCommand: true } : undefined
}

const isBot = ({ id }: Members, bot: Bot): boolean => typeof id === 'number' && String(id) === bot.id

/** Adds a text, or removes a mention, at the start also with the punctuation after it. */
function edited(written: string, { start, end, added }: Span): string {
  const before = written.slice(0, start)
  const after = written.slice(end)
  if (added !== undefined) return before + added + after
  return before.trim() === '' ? after.replace(/^[\s,:]+/, '') : before.trimEnd() + after
}
