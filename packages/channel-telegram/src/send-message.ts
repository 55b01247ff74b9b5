/** What goes out: a text, or files, the first with the text under it if that is short; buttons are under the first message. */

import { members } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Clock, type Logger, type Outbound, type Sent } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'
import { keyboardOf } from './keyboard.ts'
import { messageId, messageNumber } from './message-id.ts'
import { upload } from './upload.ts'

export interface SendOptions {
  readonly api: BotApi
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Sends one part into a chat; the result is the message as the API shows it. */
export type Part = (chat: ChatParams) => Promise<unknown>

/** Where a message goes, as each method that sends one takes it. */
export interface ChatParams {
  readonly chat_id: string
  readonly message_thread_id?: number
  readonly reply_parameters?: { readonly message_id: number; readonly allow_sending_without_reply: true }
  readonly reply_markup?: ReturnType<typeof keyboardOf>
}

const CAPTION_MAX = 1024
/** For the parts after the first, which cannot be sent anew by themselves. */
const TRIES_MAX = 3
const WAIT_SECS_MAX = 15

/** See `Channel.send`. Text goes as it is: nothing in it is markup. */
export async function sendMessage(to: Address, message: Outbound, options: SendOptions): Promise<Sent> {
  const [first, ...rest] = partsOf(message, options)
  if (!first) throw new AppError('invalid_request', 'There is nothing to send')
  const { buttons = [] } = message
  const sent = await sendTo(to, { part: first, ...(buttons.length > 0 && { reply_markup: keyboardOf(buttons) }) }, options)
  const { replyTo: _, ...unquoted } = to
  for (const [index, part] of rest.entries()) await sendRest(unquoted, part, { ...options, name: `part ${index + 2}` })
  return sent
}

function partsOf({ text, attachments = [] }: Outbound, { api, signal }: SendOptions): Part[] {
  const [first] = attachments
  const caption = first && text.length <= CAPTION_MAX ? text : ''
  const alone: Part[] = caption === '' && (text !== '' || !first) ? [(chat) => api.call('sendMessage', { ...chat, text }, { signal })] : []
  const files = attachments.map(
    (attachment): Part =>
      (chat) =>
        upload(api, { attachment, caption: attachment === first ? caption : '', chat, signal }),
  )
  return [...alone, ...files]
}

/** A group that became another one is written to under its new id. */
async function sendTo(
  to: Address,
  { part, ...extra }: { part: Part } & Pick<ChatParams, 'reply_markup'>,
  { log }: SendOptions,
): Promise<Sent> {
  try {
    return sentBy(to.to, await part({ ...chatParams(to), ...extra }))
  } catch (error) {
    const chat = refusalOf(error)?.migratedTo
    if (chat === undefined) throw error
    log.warn('a group has a new id', { old: to.to, new: chat })
    return sentBy(chat, await part({ chat_id: chat, ...extra }))
  }
}

/** The message is partly out: what fails now must not make all of it go out again. */
async function sendRest(to: Address, part: Part, { name, ...options }: SendOptions & { readonly name: string }): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await sendTo(to, { part }, options)
      return
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const waitSecs = error.code === 'rate_limited' ? (error.retryAfterSecs ?? 1) : Number.POSITIVE_INFINITY
      if (waitSecs > WAIT_SECS_MAX || tries === TRIES_MAX || options.signal.aborted) {
        throw new AppError('upstream', `The message is out without ${name} and what follows: ${error.message}`)
      }
      await options.clock.sleep(waitSecs * 1000, options.signal)
    }
  }
}

/** Where something goes: a message that is gone is answered without being quoted. */
export function chatParams({ to, thread, replyTo }: Address): ChatParams {
  const quoted = replyTo === undefined ? undefined : messageNumber(replyTo)
  return {
    chat_id: to,
    ...(thread !== undefined && { message_thread_id: Number(thread) }),
    ...(quoted !== undefined && { reply_parameters: { message_id: quoted, allow_sending_without_reply: true } }),
  }
}

function sentBy(chat: string, result: unknown): Sent {
  const { message_id: number, chat: shown } = members(result)
  if (!Number.isSafeInteger(number)) throw new AppError('upstream', 'telegram took the message but gave no id for it')
  const { id } = members(shown)
  return { id: messageId(Number.isSafeInteger(id) ? String(id) : chat, number) }
}
