/**
 * Sends messages. Their ids follow from the client id, so an attempt that is repeated is the same message for the platform: people's
 * devices drop a message whose id they know. Source: the library sends a message again with its id when a device could not read it,
 * and https://github.com/tulir/whatsmeow/pull/1190.
 */

import { untilAborted } from '@sluice/kit'
import { type Address, AppError, type Attachment, type Outbound, type Sent, sha256Hex } from '@sluice/sdk'
import type { BinaryNode, proto } from '@whiskeysockets/baileys'
import type { Device } from './device.ts'
import { addressOf, messageId, numberJid, partsOf, personOf } from './jid.ts'
import { type Uploaded, type UploadOptions, uploadFile } from './upload.ts'

const CAPTION_MAX = 1024
const ACK_MS_MAX = 30_000
const ID_DIGITS = 18
/** The beginning of the ids of web clients. */
const ID_START = '3EB0'

export interface Sender {
  readonly device: Device
  /** The number of the account, as `+` and digits. */
  readonly account: string
  readonly files: Pick<UploadOptions, 'fetch' | 'scheme'>
}

const idOf = (clientId: string, part: number | string): string =>
  ID_START + sha256Hex(`${clientId}/${part}`).slice(0, ID_DIGITS).toUpperCase()

/** Implements `Channel.send`. A short text becomes the caption of the first file, where its kind has captions. */
export async function sendMessage(sender: Sender, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const jid = addressOf(to.to)
  await checkReachable(sender.device, jid)
  const files = message.attachments ?? []
  const wantsCaption = files.length > 0 && message.text !== '' && message.text.length <= CAPTION_MAX
  const uploads: Uploaded[] = []
  for (const [index, file] of files.entries())
    uploads.push(
      await uploadFile(
        { sock: sender.device.sock, ...sender.files },
        file as Attachment,
        wantsCaption && index === 0 ? message.text : '',
        signal,
      ),
    )
  const isCaption = wantsCaption && uploads[0]?.hasCaption === true
  const texts = message.text === '' || isCaption ? [] : [textMessage(message.text)]
  const parts = [...texts, ...uploads.map((upload) => upload.message)]
  if (parts.length === 0) throw new AppError('invalid_request', 'The message has neither a text nor an attachment')
  const context = quoteOf(sender, to)
  for (const [index, part] of parts.entries())
    await relay(sender, jid, idOf(message.clientId, index), index === 0 && context ? quoting(part, context) : part, signal)
  return { id: messageId(sender.account, idOf(message.clientId, 0)) }
}

/** Without this check, a message to an unassigned number is accepted and reaches no one. The library keeps the answer for minutes. */
async function checkReachable({ sock }: Device, jid: string): Promise<void> {
  const person = personOf(jid)
  if (!person) return
  const devices = await sock.getUSyncDevices([jid], true, false).catch((cause: unknown) => {
    throw new AppError('unavailable', 'WhatsApp did not name the devices of the recipient', { cause })
  })
  if (devices.length === 0)
    throw new AppError('unavailable', 'WhatsApp named no device of the recipient; the number may not be on WhatsApp')
}

/** Implements `Channel.update`: replaces the text of a message. */
export async function editMessage(sender: Sender, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  const jid = addressOf(to.to)
  const id = partsOf(sent.id)?.id
  if (id === undefined) throw new AppError('invalid_request', 'The id is not one of a message of this channel')
  const edit: proto.IMessage = {
    protocolMessage: {
      key: { remoteJid: jid, fromMe: true, id },
      type: 14 satisfies proto.Message.ProtocolMessage.Type.MESSAGE_EDIT,
      editedMessage: textMessage(message.text),
      timestampMs: Date.now(),
    },
  }
  await relay(sender, jid, idOf(`${message.clientId}/${message.text}`, 'edit'), edit, signal, { edit: '1' })
}

/** Sends a voice message that speaks a reply. */
export async function sendVoice(sender: Sender, to: Address, file: Attachment, clientId: string, signal: AbortSignal): Promise<void> {
  const { message } = await uploadFile({ sock: sender.device.sock, ...sender.files }, file, '', signal)
  await relay(sender, addressOf(to.to), idOf(clientId, 'voice'), message, signal)
}

/** No list of mentioned people: a text alone notifies no one, whatever names are in it. */
const textMessage = (text: string): proto.IMessage => ({ extendedTextMessage: { text } })

/** The message that a reply quotes, as its author's devices know it. */
function quoteOf({ account }: Sender, { to, replyTo, more }: Address): proto.IContextInfo | undefined {
  const quoted = replyTo === undefined ? undefined : partsOf(replyTo)
  if (!quoted) return undefined
  const author = more?.author ?? (quoted.author === account ? numberJid(account) : addressOf(to))
  return { stanzaId: quoted.id, participant: author, quotedMessage: { conversation: more?.quote ?? '' } }
}

function quoting(message: proto.IMessage, contextInfo: proto.IContextInfo): proto.IMessage {
  const [name, part] = Object.entries(message)[0] ?? []
  return name === undefined ? message : { [name]: { ...(part as object), contextInfo } }
}

/** Resolves once the platform has accepted the message. */
async function relay(
  { device }: Sender,
  jid: string,
  id: string,
  message: proto.IMessage,
  signal: AbortSignal,
  attributes: Readonly<Record<string, string>> = {},
): Promise<void> {
  await device.state.keepSent(id, message)
  const answered = device.sock.waitForMessage<BinaryNode>(id, ACK_MS_MAX)
  answered.catch(() => undefined)
  try {
    await device.sock.relayMessage(jid, message, { messageId: id, additionalAttributes: { ...attributes } })
    const answer = await untilAborted(answered, signal, 'The message was aborted')
    if (!answer) throw new AppError('unavailable', 'WhatsApp did not confirm the message in time')
    const { error } = answer.attrs
    if (answer.tag === 'ack' && error !== undefined) throw refusal(error)
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('unavailable', 'The message did not leave this device', { cause: error })
  }
}

const RESTRICTED = '463'
const STALE_SESSION = '479'

/** Source: `SERVER_ERROR_CODES` of baileys; other codes come from XMPP, which uses the codes of HTTP. */
function refusal(code: string): AppError {
  if (code === RESTRICTED) return new AppError('forbidden', 'WhatsApp does not let the account write to new people at present (463)')
  if (code === '429') return new AppError('rate_limited', 'WhatsApp received too many messages')
  if (code === STALE_SESSION || /^5\d\d$/.test(code)) return new AppError('unavailable', `WhatsApp did not accept the message (${code})`)
  if (code === '401' || code === '403') return new AppError('forbidden', `WhatsApp does not let the account write here (${code})`)
  return new AppError('invalid_request', `WhatsApp refused the message (${code})`)
}
