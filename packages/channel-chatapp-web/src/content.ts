/** Reads the text and the attachments of a message. */
import { vcardWords } from '@sluice/kit'
import { attachmentKind } from '@sluice/kit/media-type'
import { type Attachment, location, type Thing, thing, unknownThing } from '@sluice/sdk'
import type { proto } from '@whiskeysockets/baileys'
import type { Library } from './library.ts'
import { fileId, type MediaKind } from './media.ts'
import { otherContent } from './other-content.ts'

export interface Content {
  readonly text: string
  readonly attachments?: readonly Attachment[]
  readonly things?: readonly Thing[]
  readonly context: proto.IContextInfo | undefined
  /** True for a recording that was made for this conversation. */
  readonly isVoice?: true
  /** True for words that the sender passes on, also if the sender's client does not say so. */
  readonly isPassedOn?: true
}

type Maybe<Value> = Value | null | undefined

/** Envelopes that the library leaves on. */
const ENVELOPES = [
  'groupMentionedMessage',
  'lottieStickerMessage',
  'botInvokeMessage',
  'botTaskMessage',
  'pollCreationMessageV4',
  'pollCreationOptionImageMessage',
  'eventCoverImage',
  'statusAddYours',
  'questionMessage',
  'questionReplyMessage',
  'commentMessage',
] as const
const ENVELOPES_MAX = 5

/** Returns a message without its envelopes, and whether one of them says that it is an answer of the platform's assistant, passed on. */
export function opened(
  library: Library,
  sealed: Maybe<proto.IMessage>,
): { readonly message: proto.IMessage | undefined; readonly isPassedOn?: true } {
  let message = library.normalizeMessageContent(sealed ?? undefined)
  let isPassedOn = false
  for (let count = 0; count < ENVELOPES_MAX; count++) {
    const passedOn = message?.botForwardedMessage?.message
    const inner = passedOn ?? ENVELOPES.map((member) => message?.[member]?.message).find((found) => found)
    if (!inner) break
    isPassedOn ||= Boolean(passedOn)
    message = library.normalizeMessageContent(inner)
  }
  return { message, ...(isPassedOn && { isPassedOn }) }
}

/** Undefined for types that need no answer. `message` is without its envelopes, such as the one of disappearing messages. */
export function contentOf(message: proto.IMessage): Content | undefined {
  const { extendedTextMessage: extended } = message
  if (message.conversation) return textContent(message.conversation, undefined)
  if (extended) return textContent(extended.text, extended.contextInfo)
  return fileContent(message) ?? placeContent(message) ?? choiceContent(message) ?? withOther(message)
}

function withOther(message: proto.IMessage): Content | undefined {
  const other = otherContent(message)
  if (!other) return undefined
  const { text = '', things, context, isOfProgram } = other
  return { text, ...(things && { things }), context: context ?? undefined, ...(isOfProgram && { isPassedOn: true }) }
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
  return isVoice ? { ...content, isVoice } : content
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

function file(part: FilePart, { kind, name, caption, given }: FileKind): Content {
  const { directPath, mediaKey, fileEncSha256 } = part
  const context = part.contextInfo ?? undefined
  if (!directPath?.startsWith('/') || !mediaKey?.length)
    return { text: caption ?? '', things: [unknownThing(`${name} that cannot be read`)], context }
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
  return { text: caption ?? '', attachments: [attachment], context }
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

function placeContent({ locationMessage, liveLocationMessage, contactMessage, contactsArrayMessage }: proto.IMessage): Content | undefined {
  const place = locationMessage ?? liveLocationMessage
  if (place) {
    const { name, address, url, comment } = (locationMessage ?? {}) as proto.Message.ILocationMessage
    const thing = location(place.degreesLatitude, place.degreesLongitude, name ?? '', address ?? '', url ?? '')
    return { text: comment ?? liveLocationMessage?.caption ?? '', things: [thing], context: place.contextInfo ?? undefined }
  }
  const contacts = contactMessage ? [contactMessage] : (contactsArrayMessage?.contacts ?? [])
  const cards = contacts.map(({ displayName, vcard }) => thing('contact', displayName ?? '', ...vcardWords(vcard ?? '')))
  return thingContent(cards, (contactMessage ?? contactsArrayMessage)?.contextInfo)
}

/** Returns the choice of the sender from a list or from buttons of another client. */
function choiceContent(message: proto.IMessage): Content | undefined {
  const { buttonsResponseMessage: button, listResponseMessage: row, templateButtonReplyMessage: template } = message
  if (button) return textContent(button.selectedDisplayText, button.contextInfo)
  if (row) return textContent(row.title, row.contextInfo)
  if (template) return textContent(template.selectedDisplayText, template.contextInfo)
  return undefined
}
