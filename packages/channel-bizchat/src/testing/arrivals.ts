/** What people can send on the platform, as webhook events of WATI. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

/**
 * Has a whole text event, with `replyContextId`, `forwarded` and `frequentlyForwarded`, and names every type of message. It does not show what
 * `data` and `messageContact` hold; those here have the members of a location and of a contact in the Cloud API of WhatsApp.
 */
const DOCS = 'https://docs.wati.io/reference/message-received'

function arrival(what: string, changes: object, expect: RecordedArrival['expect']): RecordedArrival {
  const payload = {
    id: '69282478274a880fe782b2d9',
    created: '2025-11-27T10:14:16.6268572Z',
    whatsappMessageId: 'wamid.1',
    conversationId: '68c8d56157578adb12ada249',
    ticketId: '69280a6d6244a6d9b9b486e9',
    text: null,
    type: 'text',
    data: null,
    sourceId: null,
    sourceUrl: null,
    timestamp: '1764238453',
    owner: false,
    eventType: 'message',
    statusString: 'SENT',
    avatarUrl: null,
    assignedId: '682b27727d7094c8b13ed038',
    operatorName: 'Grace Hopper',
    operatorEmail: 'grace@example.com',
    waId: '15550002222',
    messageContact: null,
    senderName: 'Ada',
    listReply: null,
    interactiveButtonReply: null,
    buttonReply: null,
    replyContextId: '',
    sourceType: 7,
    frequentlyForwarded: false,
    forwarded: false,
    channelId: null,
    channelPhoneNumber: '15550001111',
    ...changes,
  }
  return { what, source: DOCS, payload, expect: { id: 'wamid.1', sender: '+15550002222', account: '15550001111', ...expect } }
}
const file = (type: string, name: string, text: string | null = null) => ({
  type,
  text,
  data: `https://live.example/api/file/showFile?fileName=data/${type}s/${name}`,
})
const attachment = (kind: 'image' | 'audio' | 'video' | 'file', type: string, name: string) => ({
  attachments: [{ kind, name, source: { url: `https://live.example/api/file/showFile?fileName=data/${type}s/${name}` } }],
})
const contact = {
  name: { formatted_name: 'Bob Babbage', first_name: 'Bob' },
  phones: [{ phone: '+1 555 000 7777', type: 'CELL', wa_id: '15550007777' }],
}

export const bizchatArrivals: ArrivalSubject = {
  parse: (payload) => parse({ body: Buffer.from(JSON.stringify(payload)) }, { account: 'account-1' }),
  never: { quoted: 'WATI sends only the id of the message that is answered; the daemon adds the words that it knows' },
  recorded: [
    arrival('a text', { text: 'hello' }, { text: 'hello', addressed: 'direct' }),
    arrival('a reply', { text: 'this one', replyContextId: 'wamid.0' }, { text: 'this one', inReplyTo: 'wamid.0' }),
    arrival('a forwarded text', { text: 'hello', forwarded: true }, { text: '', forwarded: { text: 'hello' } }),
    arrival('a text that many forwarded', { text: 'hello', frequentlyForwarded: true }, { text: '', forwarded: { text: 'hello' } }),
    arrival(
      'a forwarded picture',
      { ...file('image', 'a.jpg', 'look'), forwarded: true },
      { text: '', forwarded: { text: 'look', ...attachment('image', 'image', 'a.jpg') } },
    ),
    arrival(
      'a forwarded contact',
      { type: 'contacts', messageContact: contact, forwarded: true },
      { forwarded: { text: '[contact Bob Babbage, Bob, +1 555 000 7777, CELL, 15550007777]' } },
    ),
    arrival('a picture', file('image', 'a.jpg', 'look'), { text: 'look', ...attachment('image', 'image', 'a.jpg') }),
    arrival('a document', file('document', '9b1c.pdf'), { text: '', ...attachment('file', 'document', '9b1c.pdf') }),
    arrival('a voice message', file('voice', 'v.opus'), attachment('audio', 'voice', 'v.opus')),
    arrival('an audio file', file('audio', 'a.mp3'), attachment('audio', 'audio', 'a.mp3')),
    arrival('a video', file('video', 'v.mp4', 'look'), { text: 'look', ...attachment('video', 'video', 'v.mp4') }),
    arrival('a sticker', file('sticker', 's.webp'), attachment('image', 'sticker', 's.webp')),
    arrival('a tap on a button of a template', { type: 'button', buttonReply: { payload: '{}', text: 'Yes' } }, { text: 'Yes' }),
    arrival('a tap on a button', { type: 'interactive', interactiveButtonReply: { id: 'b1', title: 'Change' } }, { text: 'Change' }),
    arrival(
      'a choice from a list',
      { type: 'interactive', listReply: { id: 'r1', title: 'Monday', description: '9 to 5' } },
      { text: 'Monday' },
    ),
    arrival('an answer without a documented shape', { type: 'interactive' }, { things: [{ kind: 'unknown', text: 'interactive' }] }),
    arrival(
      'a location',
      { type: 'location', data: { latitude: 52.37, longitude: 4.89, name: 'Office' } },
      { things: [{ kind: 'location', text: '52.37, 4.89, Office' }] },
    ),
    arrival(
      'a location in words',
      { type: 'location', text: 'https://maps.example/52.37,4.89' },
      { text: 'https://maps.example/52.37,4.89' },
    ),
    arrival(
      'a contact',
      { type: 'contacts', messageContact: contact },
      { things: [{ kind: 'contact', text: 'Bob Babbage, Bob, +1 555 000 7777, CELL, 15550007777' }] },
    ),
    arrival(
      'an order',
      { type: 'order', data: { text: 'two please', product_items: [{ product_retailer_id: 'tea', quantity: 2 }] } },
      { things: [{ kind: 'unknown', text: 'order, two please, tea, 2' }] },
    ),
    arrival('a catalogue', { type: 'catalog' }, { things: [{ kind: 'unknown', text: 'catalog' }] }),
    arrival('a file that is not there yet', { type: 'media_placeholder' }, { things: [{ kind: 'unknown', text: 'media_placeholder' }] }),
    arrival('a message of a later version', { type: 'hologram' }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
  ],
}
