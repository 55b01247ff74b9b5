/** The parts of a message other than the words of its sender: the message it quotes, the one it forwards, and content such as locations. */
import type { Attachment } from './attachments.ts'

/** The writer of words that a message quotes or forwards, as the platform names the writer. */
export interface Author {
  readonly name?: string
  readonly id?: string
}

/** The message that another message quotes. */
export interface Quoted {
  /** The platform's id of the quoted message, as in `Inbound.inReplyTo`. */
  readonly id?: string
  readonly author?: Author
  /** Set when the bot or the sender wrote the quoted words. Words of any other writer reach the model as untrusted text. */
  readonly by?: 'bot' | 'sender'
  /** The quoted words, or the part of them that the sender marked: at most 1,000 characters. Empty for files alone. */
  readonly text: string
  readonly attachments?: readonly Attachment[]
}

/** Words and files that the sender passes on. The model gets them as untrusted text, from any author. */
export interface Forwarded {
  readonly from?: Author & { readonly kind: 'person' | 'room' }
  readonly text: string
  readonly attachments?: readonly Attachment[]
}

/** The kinds of content other than text and files. The words of a `contact` and of a `link` come from other people. */
export const THING_KINDS = [
  'sticker',
  'location',
  'contact',
  'poll',
  'checklist',
  'link',
  'form',
  'payment',
  'call',
  'game',
  'story',
  'event',
  'unknown',
] as const
export type ThingKind = (typeof THING_KINDS)[number]

/** Content other than text and files, in words. */
export interface Thing {
  readonly kind: ThingKind
  readonly text: string
}

/**
 * How a message is addressed to the bot: in a direct conversation, by a mention, by a reply to the bot, or by a command. `overheard`: in
 * no such way.
 */
export type Addressed = 'direct' | 'mention' | 'reply' | 'command' | 'overheard'

/** Returns the mark of a message that is not to the bot, for a channel that has only messages to the bot answered. */
export const overheardPart = (
  { addressed }: { readonly addressed?: Addressed },
  mentionOnly: boolean,
): { readonly overheardOnly?: true } => (mentionOnly && addressed === 'overheard' ? { overheardOnly: true } : {})

export const QUOTED_CHARS_MAX = 1000
const THING_CHARS_MAX = 1000
const FORWARDED_CHARS_MAX = 100_000
const NAME_CHARS_MAX = 100
const UNKNOWN_KIND = 'a message of a kind that this channel does not know'

/** Content as channels find it: empty members are left out of the message. */
interface Found {
  readonly author?: { readonly [Key in keyof Author]?: string | undefined } | undefined
  readonly text: string
  readonly attachments?: readonly Attachment[] | undefined
  readonly things?: readonly Thing[] | undefined
}

interface MessageParts {
  readonly forwarded?: Forwarded | undefined
  readonly things?: readonly Thing[] | undefined
  readonly quotedFrom?: number | undefined
  readonly unverified?: true | undefined
}

/** Kinds of content whose words people other than the sender may have written, such as the preview of a page, or an event of a calendar. */
const KINDS_OF_OTHERS: readonly ThingKind[] = ['contact', 'link', 'event', 'unknown']

/** Whether content may have words of people other than the sender. */
export const isOfOthers = ({ kind }: Thing): boolean => KINDS_OF_OTHERS.includes(kind)

/** Whether a message also has words of people other than its writer, so that a quote of it is not the writer's own. */
export const hasWordsOfOthers = ({ forwarded, things = [], quotedFrom, unverified }: MessageParts): boolean =>
  forwarded !== undefined || quotedFrom !== undefined || unverified === true || things.some(isOfOthers)

/** Returns the member `quoted` of a message; no member for a quote of which nothing but the id is known. */
export function quotedPart({
  id = '',
  by,
  ...found
}: Found & { readonly id?: string | undefined; readonly by?: Quoted['by'] | undefined }): { readonly quoted?: Quoted } {
  const { text, attachments } = contentOf(found, QUOTED_CHARS_MAX)
  if (text === '' && attachments === undefined) return {}
  const own = by && !hasWordsOfOthers({ things: found.things })
  return {
    quoted: { ...(id !== '' && { id }), ...authorPart(found.author), ...(own && { by }), text, ...(attachments && { attachments }) },
  }
}

/** Returns the member `forwarded` of a message; no member without words and files. */
export function forwardedPart({ kind, ...found }: Found & { readonly kind?: 'person' | 'room' | undefined }): {
  readonly forwarded?: Forwarded
} {
  const { text, attachments } = contentOf(found, FORWARDED_CHARS_MAX)
  if (text === '' && attachments === undefined) return {}
  const { author } = authorPart(found.author)
  return { forwarded: { ...(author && { from: { kind: kind ?? 'person', ...author } }), text, ...(attachments && { attachments }) } }
}

/** Returns the member `name` of a message, on one line and without marks that change the direction of the text; no member for an empty name. */
export function namePart(name: string): { readonly name?: string } {
  const line = name
    .slice(0, 4 * NAME_CHARS_MAX)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
    .trim()
  return line === ''
    ? {}
    : {
        name: line
          .slice(0, NAME_CHARS_MAX)
          .replace(/[\ud800-\udbff]$/, '')
          .trimEnd(),
      }
}

/** Returns the member `things` of a message; no member for an empty list. */
export const thingsPart = (things: readonly Thing[]): { readonly things?: readonly Thing[] } => (things.length === 0 ? {} : { things })

/** Returns content in words: the parts that are not empty, on one line. */
export const thing = (kind: ThingKind, ...parts: readonly (string | undefined)[]): Thing => ({
  kind,
  text: joined(parts, ', '),
})

/** Returns a place; `names` are its name and its address. */
export function location(latitude: unknown, longitude: unknown, ...names: readonly string[]): Thing {
  const point = joined([coordinate(latitude), coordinate(longitude)], ', ')
  return { kind: 'location', text: joined([point, joined(names, ', ')], ': ') }
}

/** Returns a poll or another question with its choices. */
export const poll = (question: string, choices: readonly string[]): Thing => ({
  kind: 'poll',
  text: joined([question, joined(choices, '; ')], ': '),
})

/** Returns content of a kind that the channel does not know; `name` is the platform's name of the kind. */
export const unknownThing = (name: string): Thing => thing('unknown', name)

/** Returns the line that the model reads. */
export function thingLine({ kind, text }: Thing): string {
  const words = oneLine(text)
  if (kind === 'unknown') return `[${UNKNOWN_KIND}${words === '' ? '' : `: ${words}`}]`
  return `[${kind}${words === '' ? '' : ` ${words}`}]`
}

interface Wordy {
  readonly text: string
  readonly things?: readonly Thing[] | undefined
  readonly forwarded?: Forwarded | undefined
}

/** Returns a message in words, for people: its text, its things, and the message that it forwards. */
export function wordsOf({ text, things = [], forwarded }: Wordy): string {
  if (things.length === 0 && !forwarded) return text
  const passedOn = forwarded && `Forwarded${forwarded.from?.name === undefined ? '' : ` from ${forwarded.from.name}`}: ${forwarded.text}`
  return [text.trim(), ...things.map(thingLine), passedOn ?? ''].filter((part) => part !== '').join('\n')
}

function contentOf({ text, attachments = [], things }: Found, max: number): Pick<Quoted, 'text' | 'attachments'> {
  const words = wordsOf({ text, things }).trim()
  const cut = words.length <= max ? words : `${words.slice(0, max - 1).replace(/[\ud800-\udbff]$/, '')}…`
  return { text: cut, ...(attachments.length > 0 && { attachments }) }
}

function authorPart({ name = '', id = '' }: NonNullable<Found['author']> = {}): { readonly author?: Author } {
  return name === '' && id === '' ? {} : { author: { ...(name !== '' && { name }), ...(id !== '' && { id }) } }
}

const joined = (parts: readonly (string | undefined)[], separator: string): string =>
  parts.filter((part) => part !== undefined && part.trim() !== '').join(separator)

const coordinate = (value: unknown): string =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : typeof value === 'string' ? value.slice(0, 40) : ''

/** One line without brackets that could end it or begin another one. */
const oneLine = (text: string): string =>
  text.slice(0, THING_CHARS_MAX).toWellFormed().replace(/\s+/g, ' ').replaceAll('[', '(').replaceAll(']', ')').trim()
