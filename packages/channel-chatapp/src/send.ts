/**
 * Sends texts and files to a person or a group. The platform accepts no client message id, so a repeated send arrives twice. Files are
 * uploaded before anything is sent, so that a failed upload can be tried again.
 */
import { pathSegment, sendParts } from '@sluice/kit'
import { list, members, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Attachment, type Clock, type Outbound, type Sent } from '@sluice/sdk'
import { recipientOf } from './address.ts'
import { type Upload, type UploadOptions, uploadFile } from './upload.ts'

export interface Sender extends UploadOptions {
  readonly clock: Clock
}

const CAPTION_MAX = 1024

/** Implements `Channel.send`. A short text becomes the caption of the first file, where its kind has captions. */
export async function sendMessage(sender: Sender, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const uploads = await Promise.all((message.attachments ?? []).map((file: Attachment) => uploadFile(sender, file, signal)))
  const [first] = uploads
  const isCaption = first?.hasCaption === true && message.text !== '' && message.text.length <= CAPTION_MAX
  const text = { type: 'text', text: { preview_url: false, body: message.text } }
  const files = uploads.map((upload) => fileMessage(upload, isCaption && upload === first ? message.text : ''))
  const contents = isCaption || (message.text === '' && first) ? files : [text, ...files]
  const parts = contents.map((content, index) => () => sendOne(sender, index === 0 ? to : { to: to.to }, content, signal))
  return sendParts(parts, { clock: sender.clock, signal })
}

const fileMessage = ({ type, id, name, hasCaption }: Upload, caption: string): object => ({
  type,
  [type]: { id, ...(hasCaption && caption !== '' && { caption }), ...(type === 'document' && { filename: name }) },
})

async function sendOne({ graph, account }: Sender, to: Address, content: object, signal: AbortSignal): Promise<Sent> {
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
