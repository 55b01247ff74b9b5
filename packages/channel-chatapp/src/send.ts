/**
 * Sends texts, files and buttons to a person or a group, and shows the typing indicator. The platform accepts no client message id, so a
 * repeated send arrives twice. Files are uploaded before anything is sent, so that a failed upload can be tried again.
 */
import { pathSegment, sendParts } from '@sluice/kit'
import { list, members, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Attachment, type Button, type Clock, type Outbound, type Sent } from '@sluice/sdk'
import { isGroup, recipientOf } from './address.ts'
import { buttonId } from './buttons.ts'
import { type Upload, type UploadOptions, uploadFile } from './upload.ts'

export interface Sender extends UploadOptions {
  readonly clock: Clock
}

const CAPTION_MAX = 1024
/**
 * A message with buttons is shorter than others, and groups take none. Source:
 * https://developers.facebook.com/docs/whatsapp/cloud-api/messages/interactive-reply-buttons-messages
 */
const BUTTONS = { count: 3, labelChars: 20, text: 1024 }

/** Implements `Channel.send`. Where buttons do not fit, the text is complete without them. A short text becomes the caption of the first file, where its kind has captions. */
export async function sendMessage(sender: Sender, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const uploads = await Promise.all((message.attachments ?? []).map((file: Attachment) => uploadFile(sender, file, signal)))
  const [first] = uploads
  const { buttons = [] } = message
  const hasButtons = !isGroup(to.to) && fitsButtons(message.text, buttons)
  const isCaption = !hasButtons && first?.hasCaption === true && message.text !== '' && message.text.length <= CAPTION_MAX
  const text = hasButtons ? buttonsMessage(message.text, buttons) : { type: 'text', text: { preview_url: false, body: message.text } }
  const files = uploads.map((upload) => fileMessage(upload, isCaption && upload === first ? message.text : ''))
  const contents = isCaption || (message.text === '' && first) ? files : [text, ...files]
  const parts = contents.map((content, index) => () => sendOne(sender, index === 0 ? to : { to: to.to }, content, signal))
  return sendParts(parts, { clock: sender.clock, signal })
}

/**
 * Implements `Channel.typing`. The platform shows the indicator for 25 seconds or until the reply, marks the message as read, and knows
 * no indicator for groups. Source: https://developers.facebook.com/docs/whatsapp/cloud-api/typing-indicators
 */
export async function showTyping({ graph, account }: Pick<Sender, 'graph' | 'account'>, to: Address, signal: AbortSignal): Promise<void> {
  if (to.replyTo === undefined || isGroup(to.to)) return
  const body = { messaging_product: 'whatsapp', status: 'read', message_id: to.replyTo, typing_indicator: { type: 'text' } }
  await graph.call({ method: 'POST', path: `${pathSegment(account)}/messages`, body, signal })
}

/** The errors "Parameter value is not valid" and "Invalid parameter". */
const BAD_PARAMETER = /131009|100\b/
const ABOUT_QUOTE = /context|message_id/i

const isAboutQuote = (text: string): boolean => BAD_PARAMETER.test(text) && ABOUT_QUOTE.test(text)

const fitsButtons = (text: string, { length }: readonly Button[]): boolean =>
  length > 0 && length <= BUTTONS.count && text.trim() !== '' && text.length <= BUTTONS.text

function buttonsMessage(text: string, buttons: readonly Button[]): object {
  const replies = buttons.map(({ label, value }) => ({
    type: 'reply',
    reply: { id: buttonId(value), title: Array.from(label).slice(0, BUTTONS.labelChars).join('') },
  }))
  return { type: 'interactive', interactive: { type: 'button', body: { text }, action: { buttons: replies } } }
}

const fileMessage = ({ type, id, name, hasCaption }: Upload, caption: string): object => ({
  type,
  [type]: { id, ...(hasCaption && caption !== '' && { caption }), ...(type === 'document' && { filename: name }) },
})

/** A quoted message that the platform does not know any more is left out. */
async function sendOne(sender: Sender, to: Address, content: object, signal: AbortSignal): Promise<Sent> {
  try {
    return await sendOnce(sender, to, content, signal)
  } catch (error) {
    const isQuote = error instanceof AppError && error.code === 'invalid_request' && isAboutQuote(error.message)
    if (!isQuote || to.replyTo === undefined) throw error
    const { replyTo: _, ...unquoted } = to
    return sendOnce(sender, unquoted, content, signal)
  }
}

async function sendOnce({ graph, account }: Sender, to: Address, content: object, signal: AbortSignal): Promise<Sent> {
  const body = {
    messaging_product: 'whatsapp',
    ...recipientOf(to.to),
    ...content,
    ...(to.replyTo && { context: { message_id: to.replyTo } }),
  }
  const answer = await graph.call({ method: 'POST', path: `${pathSegment(account)}/messages`, body, signal })
  const id = textOf(members(list(members(answer).messages)[0]).id)
  if (id.trim() === '') throw new AppError('upstream', 'chatapp accepted the message but returned no id for it')
  return { id }
}
