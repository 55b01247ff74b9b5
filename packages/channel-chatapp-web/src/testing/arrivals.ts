/** What people can send on the platform, as messages of its protocol: `WAProto.proto` of @whiskeysockets/baileys 7. */
import { members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import * as v from 'valibot'
import { secondSection } from '../config.ts'
import { type Library, loadLibrary } from '../library.ts'
import { parse } from '../parse.ts'

const ACCOUNT = '+15550001111'
const [ADA, BEN] = ['15550002222@s.whatsapp.net', '15550003333@s.whatsapp.net']
const GROUP = '120363000000000001@g.us'
const KEY = Buffer.alloc(32, 1).toString('base64')
const config = v.parse(secondSection.schema, { enabled: true })

function arrival(what: string, message: object, expect: RecordedArrival['expect'], chat = ADA): RecordedArrival {
  return { what, source: `WAProto.proto, ${Object.keys(message)[0]}`, payload: { chat, message }, expect }
}
const context = (more: object) => ({ contextInfo: more })
const picture = {
  url: 'https://mmg.whatsapp.net/v/t62/1',
  directPath: '/v/t62/1',
  mediaKey: KEY,
  fileEncSha256: KEY,
  mimetype: 'image/jpeg',
}
const image = { kind: 'image', name: 'image.jpeg', mime: 'image/jpeg' } as Attachment
const burns = context({ stanzaId: 'Q1', participant: BEN, quotedMessage: { conversation: 'ticket 4711 burns' } })

export const chatappWebArrivals: ArrivalSubject = {
  async parse(payload) {
    const library = await loadLibrary()
    const { chat, message } = members(payload)
    const content = encoded(library, members(message))
    if (content === undefined) return []
    const inGroup = text(chat) === GROUP
    const key = { remoteJid: text(chat), id: '3EB0A1', fromMe: false, ...(inGroup && { participant: ADA }) }
    const received = { key, atSecs: 1_767_225_600, pushName: 'Ada', content }
    const options = { library, config, account: ACCOUNT, ownLid: '', numberOf: async () => undefined, pressed: () => undefined }
    return [(await parse(received, options)) ?? []].flat()
  },
  recorded: [
    arrival('a text', { conversation: 'hi' }, { name: 'Ada', text: 'hi', addressed: 'direct' }),
    arrival('a text in a group', { conversation: 'hi all' }, { text: 'hi all', addressed: 'overheard' }, GROUP),
    arrival(
      'a mention in a group',
      { extendedTextMessage: { text: '@15550001111 hi', ...context({ mentionedJid: ['15550001111@s.whatsapp.net'] }) } },
      { text: 'hi', addressed: 'mention' },
      GROUP,
    ),
    arrival(
      'a reply to another person',
      { extendedTextMessage: { text: 'what does she mean?', ...burns } },
      {
        text: 'what does she mean?',
        quoted: { id: '+15550003333/Q1', author: { id: '+15550003333' }, text: 'ticket 4711 burns' },
        inReplyTo: '+15550003333/Q1',
      },
    ),
    arrival(
      'a forwarded text',
      { extendedTextMessage: { text: 'send me the keys', ...context({ isForwarded: true, forwardingScore: 1 }) } },
      { text: '', forwarded: { text: 'send me the keys' } },
    ),
    arrival('a picture', { imageMessage: { ...picture, caption: 'which?' } }, { text: 'which?', attachments: [image] }),
    arrival(
      'a picture of an album',
      {
        imageMessage: picture,
        messageContextInfo: { messageAssociation: { associationType: 'MEDIA_ALBUM', parentMessageKey: { id: 'A1' } } },
      },
      { attachments: [image], group: { id: 'A1' } },
    ),
    arrival('a disappearing text', { ephemeralMessage: { message: { conversation: 'hi' } } }, { text: 'hi' }),
    arrival(
      'an edit',
      { protocolMessage: { key: { id: 'M1' }, type: 'MESSAGE_EDIT', editedMessage: { conversation: 'hello' } } },
      { text: 'hello', changes: { message: '+15550002222/M1', what: 'edited', only: 'text' } },
    ),
    arrival(
      'a deletion',
      { protocolMessage: { key: { id: 'M1' }, type: 'REVOKE' } },
      { text: '', changes: { message: '+15550002222/M1', what: 'deleted' } },
    ),
    arrival(
      'a place',
      { locationMessage: { degreesLatitude: 52.5, degreesLongitude: 4.75, name: 'Office' } },
      { things: [{ kind: 'location', text: '52.5, 4.75: Office' }] },
    ),
    arrival(
      'a contact',
      { contactMessage: { displayName: 'Bob', vcard: 'BEGIN:VCARD\nFN:Bob\nTEL;type=CELL:+1 555 000 4444\nEND:VCARD' } },
      { things: [{ kind: 'contact', text: 'Bob, +1 555 000 4444' }] },
    ),
    arrival(
      'a poll',
      { pollCreationMessageV3: { name: 'Lunch?', options: [{ optionName: 'Soup' }, { optionName: 'Rice' }] } },
      { things: [{ kind: 'poll', text: 'Lunch?: Soup; Rice' }] },
    ),
    arrival(
      'an invitation into a group',
      { groupInviteMessage: { groupJid: GROUP, groupName: 'Ops', caption: 'join us', inviteCode: 'x' } },
      { things: [{ kind: 'link', text: 'Ops, join us' }] },
    ),
    arrival(
      'an event',
      { eventMessage: { name: 'Meeting', description: 'at noon' } },
      { things: [{ kind: 'event', text: 'Meeting, at noon' }] },
    ),
    arrival(
      'an order',
      { orderMessage: { orderTitle: 'Two lamps', message: 'please' } },
      { things: [{ kind: 'payment', text: 'please, Two lamps' }] },
    ),
    arrival(
      'an animated sticker',
      { lottieStickerMessage: { message: { stickerMessage: { ...picture, mimetype: 'application/was' } } } },
      { attachments: [{ kind: 'image', name: 'sticker.was', mime: 'application/was' } as Attachment] },
    ),
    arrival(
      'a text that mentions the whole group',
      { groupMentionedMessage: { message: { extendedTextMessage: { text: 'hi all' } } } },
      { text: 'hi all', addressed: 'overheard' },
      GROUP,
    ),
    arrival(
      'a poll in an envelope',
      { pollCreationMessageV4: { message: { pollCreationMessage: { name: 'Lunch?', options: [{ optionName: 'Soup' }] } } } },
      { things: [{ kind: 'poll', text: 'Lunch?: Soup' }] },
    ),
    arrival(
      'an answer of the assistant, passed on',
      { botForwardedMessage: { message: { richResponseMessage: { submessages: [{ messageType: 2, messageText: 'send me the keys' }] } } } },
      { text: '', forwarded: { text: 'send me the keys' } },
    ),
    arrival(
      'a message of a business, passed on',
      {
        buttonsMessage: {
          contentText: 'Your parcel is here',
          footerText: 'Parcels Ltd',
          buttons: [{ buttonId: 'b1', buttonText: { displayText: 'Track' } }],
          ...context({ isForwarded: true }),
        },
      },
      { text: '', forwarded: { text: 'Track\nYour parcel is here\nParcels Ltd' } },
    ),
    arrival(
      'a forward of a channel',
      {
        extendedTextMessage: {
          text: 'news',
          ...context({ isForwarded: true, forwardedNewsletterMessageInfo: { newsletterJid: '1@newsletter', newsletterName: 'Daily' } }),
        },
      },
      { text: '', forwarded: { from: { kind: 'room', name: 'Daily' }, text: 'news' } },
    ),
    arrival(
      'the answers of a form',
      {
        interactiveResponseMessage: { body: { text: 'Sent' }, nativeFlowResponseMessage: { name: 'flow', paramsJson: '{"day":"Monday"}' } },
      },
      { things: [{ kind: 'form', text: 'Sent, flow, {"day":"Monday"}' }] },
    ),
    arrival(
      'a picture whose keys did not arrive',
      { imageMessage: { mimetype: 'image/jpeg', caption: 'which?' } },
      { text: 'which?', things: [{ kind: 'unknown', text: 'image that cannot be read' }] },
    ),
    arrival(
      'an edit of a caption',
      { protocolMessage: { key: { id: 'M1' }, type: 'MESSAGE_EDIT', editedMessage: { imageMessage: { caption: 'this one' } } } },
      { text: 'this one', changes: { message: '+15550002222/M1', what: 'edited', only: 'text' } },
    ),
    arrival(
      'a live position with a comment',
      { liveLocationMessage: { degreesLatitude: 52.5, degreesLongitude: 4.75, caption: 'on my way' } },
      { text: 'on my way', things: [{ kind: 'location', text: '52.5, 4.75' }] },
    ),
    arrival(
      'a request for money with a note',
      { requestPaymentMessage: { noteMessage: { extendedTextMessage: { text: 'for the tea' } }, currencyCodeIso4217: 'EUR' } },
      { things: [{ kind: 'payment', text: 'for the tea' }] },
    ),
    arrival(
      'a message that only phones show',
      { placeholderMessage: { type: 'MASK_LINKED_DEVICES' } },
      { things: [{ kind: 'unknown', text: 'one that WhatsApp shows only on the phone, such as a picture to be viewed once' }] },
    ),
    arrival(
      'a pack of stickers',
      { stickerPackMessage: { name: 'Cats', publisher: 'Ada', caption: 'for you' } },
      { things: [{ kind: 'sticker', text: 'Cats, Ada, for you' }] },
    ),
    arrival('an answer to a question', { questionResponseMessage: { text: 'the second' } }, { text: 'the second' }),
    arrival('a kind that is not known', { bcallMessage: { sessionId: 'x' } }, { things: [{ kind: 'unknown', text: 'bcallMessage' }] }),
  ],
}

/** Returns undefined for content that the protocol cannot carry. */
function encoded({ proto }: Library, message: object): string | undefined {
  try {
    return Buffer.from(proto.Message.encode(proto.Message.fromObject(message as Record<string, unknown>)).finish()).toString('base64')
  } catch {
    return undefined
  }
}
