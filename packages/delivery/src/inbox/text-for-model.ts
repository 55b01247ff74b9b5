/**
 * Makes the text of a message for the model: the words of the sender, and the quotes, forwards and further content of the message. Words
 * of unverified authors are framed.
 */
import {
  type Author,
  frameUntrusted,
  type Inbound,
  isAtLeast,
  isOfOthers,
  type Quoted,
  type Standing,
  sourceOfMessage,
  type Thing,
  thingLine,
} from '@sluice/sdk'
import { type MediaOptions, textWithMedia } from './media.ts'

export interface TextOptions extends MediaOptions {
  /** The standing of the sender. */
  readonly standing: Standing
  /** Resolves to whether the conversation has these words already. Called only for a message that quotes. */
  isInHistory(words: string): Promise<boolean>
}

/** How much of a quote is shown whose message the conversation has. */
const KNOWN_CHARS_MAX = 80

/**
 * Resolves to the text with its attachments as `textWithMedia` has them. The whole text is framed unless the sender is verified and an
 * entry of the allowlist other than `*` covers the sender. Otherwise only the words of others are framed: quotes, forwards, and
 * shared content such as contact cards and links. Rejects as `textWithMedia` does.
 */
export async function textForModel(message: Inbound, { standing, ...options }: TextOptions): Promise<string> {
  const { sender, things = [] } = message
  const isKnown = isAtLeast(standing, 'listed')
  const from = `a message from ${sender} on ${options.channel.name}`
  const framed = (what: string, words: string): string => (isKnown ? frameUntrusted(`${what} in ${from}`, words) : `(${what})\n${words}`)
  const said = isKnown ? withFramedQuotes(message, (words) => framed('quote', words)) : message.text
  const lines = (some: readonly Thing[]): string => some.map(thingLine).join('\n')
  const foreign = things.filter(isOfOthers)
  const parts = [
    await textWithMedia({ ...message, text: said }, options),
    lines(things.filter((one) => !isOfOthers(one))),
    foreign.length === 0 ? '' : framed('shared content', lines(foreign)),
    await forwardedText(message, options, framed),
    await quotedText(message, options, framed),
  ]
  const all = parts.filter((part) => part !== '').join('\n')
  return isKnown ? all : frameUntrusted(sourceOfMessage(options.channel.name, sender), all)
}

/** Returns the text with a frame around each quote in it. */
function withFramedQuotes({ text, quotedFrom = text.length, ownBelow = [] }: Inbound, framed: (words: string) => string): string {
  let said = text.slice(0, quotedFrom)
  let at = quotedFrom
  for (const { from, to } of [...ownBelow, { from: text.length, to: text.length }]) {
    const quote = text.slice(at, from).trimEnd()
    if (quote !== '') said += from < text.length ? `${framed(quote)}\n\n` : framed(text.slice(at))
    said += text.slice(from, to)
    at = to
  }
  return said
}

type Frame = (what: string, words: string) => string
type PartOptions = Omit<TextOptions, 'standing'>

async function forwardedText(message: Inbound, options: PartOptions, framed: Frame): Promise<string> {
  const { forwarded } = message
  if (!forwarded) return ''
  return framed(`forwarded message${nameOf(forwarded.from)}`, await textWithMedia({ ...partOf(message), ...forwarded }, options))
}

async function quotedText(message: Inbound, options: PartOptions, framed: Frame): Promise<string> {
  const { quoted } = message
  if (!quoted) return ''
  const isInHistory = quoted.text !== '' && (await options.isInHistory(quoted.text))
  const words = isInHistory ? beginning(quoted.text) : quoted.text
  const text = await textWithMedia({ ...partOf(message), ...quoted, text: words }, options)
  if (quoted.by === undefined) return framed(`quoted message${nameOf(quoted.author)}`, text)
  return `(${WHOSE[quoted.by]}${isInHistory ? ', which begins' : ''}: ${JSON.stringify(text)})`
}

const WHOSE = {
  bot: 'The sender replies to your message',
  sender: "The sender replies to the sender's own message",
} as const satisfies Record<NonNullable<Quoted['by']>, string>

const nameOf = ({ name, id }: Author = {}): string => {
  const both = name !== undefined && id !== undefined ? `${name} (${id})` : (name ?? id)
  return both === undefined ? '' : ` of ${both}`
}

const partOf = ({ id, account, sender, to }: Inbound): Omit<Inbound, 'text'> => ({ id, account, sender, to })

const beginning = (text: string): string => (text.length <= KNOWN_CHARS_MAX ? text : `${text.slice(0, KNOWN_CHARS_MAX).toWellFormed()}…`)
