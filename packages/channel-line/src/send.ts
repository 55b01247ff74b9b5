/**
 * Sends messages and shows the loading animation. The first answer to a message uses its reply token, which works once, for about a
 * minute, and does not count against the monthly limit. Any other message is pushed, with a key by which LINE drops repeats for a day.
 */
import { type ProviderAnswer, pathSegment, splitText } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Button, type Outbound, type Sent, sha256Hex } from '@sluice/sdk'
import { explain, type LineApi } from './api.ts'

/** One request has up to five messages of up to 5,000 UTF-16 units, so that a long answer needs its reply token once. */
const MESSAGE_MAX = 5000
const MESSAGES_MAX = 5
/** UTF-16 units. A cut inside of a character moves by one unit. */
export const TEXT_MAX = MESSAGES_MAX * (MESSAGE_MAX - 1)

const BUTTONS_MAX = 13
const LABEL_CHARS_MAX = 20
const LOADING_SECONDS = 10
const BAD_REQUEST = 400
const CONFLICT = 409
const MONTHLY_LIMIT = /monthly limit/i
const BAD_TOKEN = /invalid reply token/i
/** LINE names the property that it refuses. */
const BAD_QUOTE = /quote ?token/i
/** Codes of failures after which LINE may have accepted a push. Its key makes a repeat safe. */
const UNCERTAIN = ['upstream', 'upstream_timeout', 'aborted']

/** See `Channel.send`. A message that cannot be quoted is left out. */
export async function sendMessage(api: LineApi, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  try {
    return await sendOnce(api, to, message, signal)
  } catch (error) {
    const isQuote = error instanceof AppError && error.code === 'invalid_request' && BAD_QUOTE.test(error.message)
    if (!isQuote || to.more?.quote === undefined) throw error
    const { quote: _, ...more } = to.more
    return sendOnce(api, { ...to, more }, message, signal)
  }
}

async function sendOnce(api: LineApi, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const messages = textMessages(to, message)
  if (to.replyTo !== undefined) {
    const sent = await reply(api, to.replyTo, messages, signal)
    if (sent) return sent
  }
  return push(api, to.to, messages, message.clientId, signal)
}

/** See `Channel.typing`. LINE shows the animation to one person only, not in groups. */
export async function showLoading(api: LineApi, { to }: Address, signal: AbortSignal): Promise<void> {
  if (!to.startsWith('U')) return
  await api.post({ path: '/v2/bot/chat/loading/start', body: { chatId: to, loadingSeconds: LOADING_SECONDS }, signal })
}

/** Returns undefined if the token was used before, or is too old. */
async function reply(api: LineApi, replyToken: string, messages: readonly object[], signal: AbortSignal): Promise<Sent | undefined> {
  const answer = await api.post({ path: '/v2/bot/message/reply', body: { replyToken, messages }, signal, accept: [BAD_REQUEST] })
  if (answer.status !== BAD_REQUEST) return sentIn(answer)
  if (BAD_TOKEN.test(text(members(answer.json).message))) return undefined
  throw new AppError('invalid_request', `line answered 400: ${explain(answer.json) ?? 'no reason given'}`)
}

async function push(api: LineApi, to: string, messages: readonly object[], clientId: string, signal: AbortSignal): Promise<Sent> {
  const headers = { 'x-line-retry-key': retryKey(clientId) }
  try {
    return sentIn(await api.post({ path: '/v2/bot/message/push', body: { to, messages }, headers, signal, accept: [CONFLICT] }))
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.code === 'rate_limited' && MONTHLY_LIMIT.test(error.message)) {
      throw new AppError('forbidden', `${error.message} (raise the plan of the official account, or wait for the next month)`)
    }
    throw UNCERTAIN.includes(error.code) ? new AppError('unavailable', error.message) : error
  }
}

/** Returns the last message, which has the buttons. The answer 409 to a repeat has the ids of the messages that exist. */
function sentIn({ json, headers }: ProviderAnswer): Sent {
  const id = text(members(list(members(json).sentMessages).at(-1)).id) || headers.get('x-line-accepted-request-id') || ''
  if (id === '') throw new AppError('upstream', 'line accepted the message but did not return its id')
  return { id }
}

/** The first message quotes, and the last one has the buttons, which LINE shows under the newest message only. */
function textMessages({ more }: Address, { text: plain, buttons = [] }: Outbound): readonly object[] {
  const parts = partsOf(plain)
  return parts.map((part, index) => ({
    type: 'text',
    text: part,
    ...(index === 0 && more?.quote !== undefined && { quoteToken: more.quote }),
    ...(index === parts.length - 1 && buttons.length > 0 && { quickReply: { items: buttons.slice(0, BUTTONS_MAX).map(quickReply) } }),
  }))
}

/** Cuts at the ends of lines, unless that makes too many parts. */
function partsOf(plain: string): readonly string[] {
  const parts = splitText(plain, { text: MESSAGE_MAX, unit: 'utf16' })
  return parts.length > 0 && parts.length <= MESSAGES_MAX ? parts : cut(plain)
}

function cut(plain: string): readonly string[] {
  const parts: string[] = []
  for (let from = 0; from < plain.length; ) {
    const end = from + MESSAGE_MAX
    const isInside = /[\ud800-\udbff]/.test(plain[end - 1] ?? '') && end < plain.length
    const to = isInside ? end - 1 : end
    parts.push(plain.slice(from, to))
    from = to
  }
  return parts
}

/** A quick reply disappears when it is tapped, or when a person writes; a keyword answers the prompt then. */
const quickReply = ({ label, value }: Button): object => {
  const short = Array.from(label).slice(0, LABEL_CHARS_MAX).join('')
  return { type: 'action', action: { type: 'postback', label: short, data: value, displayText: short } }
}

/** Returns a UUID that is the same for all attempts to send one message. */
function retryKey(clientId: string): string {
  const hex = sha256Hex(clientId)
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}

/** The path of the content of a message. */
export const contentPath = (message: string): `/${string}` => `/v2/bot/message/${pathSegment(message)}/content`
