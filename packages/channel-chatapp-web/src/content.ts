/** Reads the text and the attachments of a message. */
import { attachmentKind } from '@sluice/kit/media-type'
import { type Attachment, location, poll, type Thing, thing, unknownThing } from '@sluice/sdk'
import type { proto } from '@whiskeysockets/baileys'
import { fileId, type MediaKind } from './media.ts'

export interface Content {
  readonly text: string
  readonly attachments?: readonly Attachment[]
  readonly things?: readonly Thing[]
  readonly context: proto.IContextInfo | undefined
  /** True for a recording that was made for this conversation. */
  readonly isVoice?: true
}

type Maybe<Value> = Value | null | undefined

/** Undefined for types that need no answer. `message` is without its envelopes, such as the one of disappearing messages. */
export function contentOf(message: proto.IMessage): Content | undefined {
  const { extendedTextMessage: extended } = message
  if (message.conversation) return textContent(message.conversation, undefined)
  if (extended) return textContent(extended.text, extended.contextInfo)
  return fileContent(message) ?? placeContent(message) ?? choiceContent(message) ?? otherContent(message)
}

const textContent = (text: Maybe<string>, context: Maybe<proto.IContextInfo>): Content | undefined =>
  text?.trim() ? { text, context: context ?? undefined } : undefined

const thingContent = (things: readonly Thing[], context: Maybe<proto.IContextInfo>): Content | undefined =>
  things.length === 0 ? undefined : { text: '', things, context: context ?? undefined }

function fileContent(message: proto.IMessage): Content | undefined {
  const { imageMessage: image, audioMessage: audio, documentMessage: document, stickerMessage: sticker } = message
  const video = message.videoMessage ?? message.ptvMessage
  if (image) return file(image, { kind: 'image', name: 'image', caption: image.caption })
  if (sticker) return file(sticker, { kind: 'image', name: 'sticker' })
  if (video) return file(video, { kind: 'video', name: 'video', caption: video.caption })
  if (document) return file(document, { kind: 'document', name: 'document', caption: document.caption, given: document.fileName })
  if (!audio) return undefined
  const isVoice = audio.ptt === true
  const content = file(audio, { kind: 'audio', name: isVoice ? 'voice' : 'audio' })
  return content && isVoice ? { ...content, isVoice } : content
}

interface FilePart {
  readonly directPath?: Maybe<string>
  readonly mediaKey?: Maybe<Uint8Array>
  readonly fileEncSha256?: Maybe<Uint8Array>
  readonly mimetype?: Maybe<string>
  readonly contextInfo?: Maybe<proto.IContextInfo>
}

interface FileKind {
  readonly kind: MediaKind
  readonly name: string
  readonly caption?: Maybe<string>
  /** The file name that the sender gave. */
  readonly given?: Maybe<string>
}

function file(part: FilePart, { kind, name, caption, given }: FileKind): Content | undefined {
  const { directPath, mediaKey, fileEncSha256 } = part
  if (!directPath?.startsWith('/') || !mediaKey?.length) return undefined
  const [mime = ''] = (part.mimetype ?? '').split(';')
  const [, format] = /^\w+\/([\w-]+)/.exec(mime) ?? []
  const own = attachmentKind(mime)
  const id = fileId({ kind, path: directPath, key: base64(mediaKey), hash: base64(fileEncSha256 ?? new Uint8Array()) })
  const attachment: Attachment = {
    kind: own === 'file' && kind !== 'document' ? kind : own,
    name: given || (format ? `${name}.${format === 'mpeg' ? 'mp3' : format}` : name),
    ...(mime !== '' && { mime }),
    source: { id },
  }
  return { text: caption ?? '', attachments: [attachment], context: part.contextInfo ?? undefined }
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

function placeContent({ locationMessage, liveLocationMessage, contactMessage, contactsArrayMessage }: proto.IMessage): Content | undefined {
  const place = locationMessage ?? liveLocationMessage
  if (place) {
    const { name, address } = (locationMessage ?? {}) as proto.Message.ILocationMessage
    return thingContent([location(place.degreesLatitude, place.degreesLongitude, name ?? '', address ?? '')], place.contextInfo)
  }
  const contacts = contactMessage ? [contactMessage] : (contactsArrayMessage?.contacts ?? [])
  const cards = contacts.map(({ displayName, vcard }) => thing('contact', displayName ?? '', ...numbersIn(vcard ?? '')))
  return thingContent(cards, (contactMessage ?? contactsArrayMessage)?.contextInfo)
}

/** The telephone numbers of a vCard. */
const numbersIn = (vcard: string): string[] =>
  vcard
    .split(/\r?\n/)
    .filter((line) => /^(?:item\d+\.)?TEL/i.test(line))
    .map((line) => line.slice(line.lastIndexOf(':') + 1))

/** What the sender picked from a list or from buttons of another client. */
function choiceContent(message: proto.IMessage): Content | undefined {
  const { buttonsResponseMessage: button, listResponseMessage: row, templateButtonReplyMessage: template } = message
  if (button) return textContent(button.selectedDisplayText, button.contextInfo)
  if (row) return textContent(row.title, row.contextInfo)
  if (template) return textContent(template.selectedDisplayText, template.contextInfo)
  return undefined
}

/** Members that carry keys, acknowledgements, updates between devices and the number of pictures in an album, and no message of a person. */
const IGNORED =
  /^(?:senderKeyDistributionMessage|messageContextInfo|albumMessage|protocolMessage|reactionMessage|encReactionMessage|pollUpdateMessage|keepInChatMessage|pinInChatMessage|deviceSentMessage|fastRatchetKeySenderKeyDistributionMessage|chat|placeholderMessage|stickerSyncRmrMessage|secretEncryptedMessage|encCommentMessage|encEventResponseMessage|botInvokeMessage|callLogMesssage|initialSecurityNotificationSettingSync|extendedTextMessage|conversation|(?:image|video|audio|document|sticker|ptv)Message)$/

/** Polls, events, payments and kinds that are not known. */
function otherContent(message: proto.IMessage): Content | undefined {
  const asked = message.pollCreationMessage ?? message.pollCreationMessageV2 ?? message.pollCreationMessageV3
  if (asked)
    return thingContent(
      [
        poll(
          asked.name ?? '',
          (asked.options ?? []).map(({ optionName }) => optionName ?? ''),
        ),
      ],
      asked.contextInfo,
    )
  const { eventMessage: event, groupInviteMessage: invite, orderMessage: order, productMessage: product } = message
  if (event) return thingContent([thing('event', event.name ?? '', event.description ?? '')], event.contextInfo)
  if (invite) return thingContent([thing('link', invite.groupName ?? '', invite.caption ?? '')], invite.contextInfo)
  if (order) return thingContent([thing('payment', order.orderTitle ?? '', order.message ?? '')], order.contextInfo)
  if (product) return thingContent([thing('link', product.product?.title ?? '', product.body ?? '')], product.contextInfo)
  const others = Object.entries(message).flatMap(([member, value]) =>
    typeof value === 'object' && value !== null && !IGNORED.test(member) ? [unknownThing(member)] : [],
  )
  return thingContent(others, undefined)
}
