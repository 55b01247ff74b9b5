/** Sends messages and files, edits messages, and shows the typing indicator. */
import type { InlineKeyboardMarkup } from '@grammyjs/types'
import { members } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Button, type Host, type Outbound, type Sent } from '@sluice/sdk'
import { type BotApi, refusalOf } from './api.ts'
import { entitiesOf, withoutRefusedEntities } from './entities.ts'
import { type ChatParams, upload } from './media.ts'
import { chatOf, messageId, messageNumber } from './parse.ts'

/** Sends one part of a message to a chat, and returns the message as the API shows it. */
type Part = (chat: ChatParams) => Promise<unknown>

const CAPTION_MAX = 1024
/** The number of buttons that fit next to each other on a phone. */
const BUTTONS_IN_ROW = 3
/** Limits for the parts after the first, which the outbox cannot send again on their own. */
const ATTEMPTS_MAX = 3
const WAIT_SECS_MAX = 15
const UNCHANGED = /message is not modified/i
/** The topic was deleted or closed, or the group has no topics any more. */
const TOPIC_GONE = /message thread not found|TOPIC_DELETED|TOPIC_CLOSED|TOPIC_ID_INVALID|MESSAGE_THREAD_INVALID/i

export class MessageSender {
  readonly #host: Host
  readonly #api: BotApi

  constructor(host: Host, api: BotApi) {
    this.#host = host
    this.#api = api
  }

  /**
   * See `Channel.send`. Styles are sent as entities, apart from the text. A short text becomes the caption of the first file; buttons go under the
   * first part. A failure of a later part throws `upstream`, so that the first part is not sent twice.
   */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const [first, ...rest] = this.#partsOf(message, signal)
    if (!first) throw new AppError('invalid_request', 'The message has neither a text nor an attachment')
    const { buttons = [] } = message
    const sent = await this.#sendPart(to, first, buttons.length > 0 ? { reply_markup: keyboardOf(buttons) } : {})
    const { replyTo: _, ...unquoted } = to
    for (const [index, part] of rest.entries()) await this.#sendLaterPart(unquoted, part, `part ${index + 2}`, signal)
    return sent
  }

  #partsOf({ text, styles, attachments = [] }: Outbound, signal: AbortSignal): Part[] {
    const [first] = attachments
    const caption = first && text.length <= CAPTION_MAX ? text : ''
    const hasTextPart = caption === '' && (text !== '' || !first)
    const entities = entitiesOf(styles)
    const textPart: Part = (chat) =>
      withoutRefusedEntities(entities, (shown) => this.#api.call('sendMessage', { ...chat, text, ...shown }, { signal }))
    const files = attachments.map(
      (attachment): Part =>
        (chat) =>
          attachment === first && caption !== ''
            ? withoutRefusedEntities(entities, (shown) => upload(this.#api, attachment, { text: caption, ...shown }, chat, signal))
            : upload(this.#api, attachment, { text: '' }, chat, signal),
    )
    return hasTextPart ? [textPart, ...files] : files
  }

  /** Sends the part to the new chat if the group has become a supergroup, and outside of the topic if that takes no messages. */
  async #sendPart(to: Address, part: Part, extra: { readonly reply_markup?: InlineKeyboardMarkup } = {}): Promise<Sent> {
    try {
      return sentBy(to.to, await part({ ...chatParams(to), ...extra }))
    } catch (error) {
      const { thread, ...unthreaded } = to
      const { replyTo, ...unquoted } = unthreaded
      if ((thread ?? replyTo) !== undefined && TOPIC_GONE.test(refusalOf(error)?.description ?? '')) {
        this.#host.log.warn('topic takes no messages', { channel: 'telegram', chat: to.to, topic: thread })
        // The platform puts a message that quotes another one into the topic of that one: https://github.com/tdlib/telegram-bot-api/issues/447
        return this.#sendPart(thread === undefined ? unquoted : unthreaded, part, extra)
      }
      const chat = refusalOf(error)?.migratedTo
      if (chat === undefined) throw error
      this.#host.log.warn('group has a new id', { channel: 'telegram', old: to.to, new: chat })
      return sentBy(chat, await part({ chat_id: chat, ...extra }))
    }
  }

  /** Waits for short rate limits itself, because a retry of the whole message would send the first part twice. */
  async #sendLaterPart(to: Address, part: Part, name: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#sendPart(to, part)
        return
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        const waitSecs = error.code === 'rate_limited' ? (error.retryAfterSecs ?? 1) : Number.POSITIVE_INFINITY
        if (waitSecs > WAIT_SECS_MAX || attempt === ATTEMPTS_MAX || signal.aborted) {
          throw new AppError('upstream', `The message was sent without ${name} and later parts: ${error.message}`)
        }
        await this.#host.clock.sleep(waitSecs * 1000, signal)
      }
    }
  }
}

/** See `Channel.update`. */
export async function editMessage(api: BotApi, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  const number = messageNumber(sent.id)
  if (number === undefined) throw new AppError('invalid_request', `'${sent.id}' is not a message id of telegram`)
  if (message.attachments?.length) throw new AppError('invalid_request', 'An edit cannot add files to a message')
  try {
    const edit = {
      // After a group became a supergroup, the id names the chat in which the message was sent.
      chat_id: chatOf(sent.id) ?? to.to,
      message_id: number,
      text: message.text,
      reply_markup: keyboardOf(message.buttons ?? []),
    }
    await withoutRefusedEntities(entitiesOf(message.styles), (shown) => api.call('editMessageText', { ...edit, ...shown }, { signal }))
  } catch (error) {
    if (!UNCHANGED.test(refusalOf(error)?.description ?? '')) throw error
  }
}

/** See `Channel.typing`. */
export async function showTyping(api: BotApi, { to, thread }: Address, signal: AbortSignal): Promise<void> {
  const chat = chatParams({ to, ...(thread !== undefined && { thread }) })
  await api.call('sendChatAction', { ...chat, action: 'typing' }, { signal })
}

/** A quoted message that no longer exists does not stop the reply. */
function chatParams({ to, thread, replyTo }: Address): ChatParams {
  const quoted = replyTo === undefined ? undefined : messageNumber(replyTo)
  return {
    chat_id: to,
    ...(thread !== undefined && { message_thread_id: Number(thread) }),
    ...(quoted !== undefined && { reply_parameters: { message_id: quoted, allow_sending_without_reply: true } }),
  }
}

function keyboardOf(buttons: readonly Button[]): InlineKeyboardMarkup {
  const keys = buttons.map(({ label, value, tone }) => ({
    text: label,
    callback_data: value,
    style: tone === 'good' ? ('success' as const) : ('danger' as const),
  }))
  const rows = Array.from({ length: Math.ceil(keys.length / BUTTONS_IN_ROW) }, (_, row) =>
    keys.slice(row * BUTTONS_IN_ROW, (row + 1) * BUTTONS_IN_ROW),
  )
  return { inline_keyboard: rows }
}

function sentBy(chat: string, result: unknown): Sent {
  const { message_id: number, chat: shown } = members(result)
  if (!Number.isSafeInteger(number)) throw new AppError('upstream', 'telegram accepted the message but did not return its id')
  const { id } = members(shown)
  return { id: messageId(Number.isSafeInteger(id) ? String(id) : chat, number) }
}
