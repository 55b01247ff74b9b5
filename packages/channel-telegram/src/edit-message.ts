/** Replaces the text of a message of ours, and the buttons under it. */
import { type Address, AppError, type Outbound, type Sent } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'
import { keyboardOf } from './keyboard.ts'
import { chatOf, messageNumber } from './message-id.ts'

const UNCHANGED = /message is not modified/i

/** See `Channel.update`. */
export async function editMessage(
  api: BotApi,
  { to, sent, message, signal }: { readonly to: Address; readonly sent: Sent; readonly message: Outbound; readonly signal: AbortSignal },
): Promise<void> {
  const number = messageNumber(sent.id)
  if (number === undefined) throw new AppError('invalid_request', `'${sent.id}' is no message of telegram`)
  if (message.attachments?.length) throw new AppError('invalid_request', 'A message cannot be given files later')
  try {
    await api.call(
      'editMessageText',
      // Its own chat, which a group that got a new id has left behind.
      {
        chat_id: chatOf(sent.id) ?? to.to,
        message_id: number,
        text: message.text,
        reply_markup: keyboardOf(message.buttons ?? []),
      },
      { signal },
    )
  } catch (error) {
    if (!UNCHANGED.test(refusalOf(error)?.description ?? '')) throw error
  }
}
