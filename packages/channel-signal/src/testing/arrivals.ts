/** What people can send on the platform, as envelopes of signal-cli. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const CLI = 'https://github.com/AsamK/signal-cli/tree/master/src/main/java/org/asamk/signal/json'
const ACCOUNT = '+15550001111'
const ADA = 'aaaaaaaa-0000-4000-8000-000000000001'
const EVE = 'bbbbbbbb-0000-4000-8000-000000000001'

function arrival(what: string, type: string, data: object, expect: RecordedArrival['expect']): RecordedArrival {
  const dataMessage = { timestamp: 1_767_225_600_000, message: null, expiresInSeconds: 0, viewOnce: false, ...data }
  const source = { source: '+15550002222', sourceNumber: '+15550002222', sourceUuid: ADA, sourceName: 'Ada', sourceDevice: 1 }
  const payload = { envelope: { ...source, timestamp: 1_767_225_600_000, dataMessage }, account: ACCOUNT }
  return { what, source: `${CLI}/${type}.java`, payload, expect }
}
const quote = {
  id: 1_767_225_500_000,
  author: '+15559998888',
  authorNumber: '+15559998888',
  authorUuid: EVE,
  text: 'ticket 4711 burns',
  attachments: [],
}
const group = { groupInfo: { groupId: 'R3JvdXA=', type: 'DELIVER' } }
const id = `${EVE}/1767225500000`
const ofBot = { ...quote, author: ACCOUNT, authorNumber: ACCOUNT }
const ofAda = { ...quote, author: '+15550002222', authorNumber: '+15550002222', authorUuid: ADA }
const picture = { contentType: 'image/png', filename: 'cat.png', thumbnail: { id: 't.png', contentType: 'image/png', filename: 'cat.png' } }

export const signalArrivals: ArrivalSubject = {
  parse: (payload) => parse(payload, { account: ACCOUNT, ignore_attachments: false, ignore_stories: false }),
  never: { forwarded: 'Signal does not tell forwarded messages apart' },
  recorded: [
    {
      what: 'a call',
      source: `${CLI}/JsonCallMessage.java`,
      payload: {
        envelope: {
          source: '+15550002222',
          sourceNumber: '+15550002222',
          sourceUuid: ADA,
          sourceName: 'Ada',
          timestamp: 1_767_225_600_000,
          callMessage: { offerMessage: { id: 1, type: 'VIDEO_CALL', opaque: 'AAAA' } },
        },
        account: ACCOUNT,
      },
      expect: { text: '', addressed: 'direct', things: [{ kind: 'call', text: 'video' }] },
    },
    arrival('a text', 'JsonDataMessage', { message: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival(
      'a picture to be viewed once, which Signal gives to the first device alone',
      'JsonDataMessage',
      { viewOnce: true, attachments: [] },
      { text: '', things: [{ kind: 'unknown', text: 'media to be viewed once' }] },
    ),
    arrival(
      'a picture to be viewed once, with the picture',
      'JsonDataMessage',
      { viewOnce: true, attachments: [{ contentType: 'image/jpeg', id: 'a.jpg', filename: 'a.jpg', size: 3 }] },
      { text: '', attachments: [{ kind: 'image', name: 'a.jpg', mime: 'image/jpeg', source: { id: 'a.jpg' } }] },
    ),
    arrival('a text in a group', 'JsonDataMessage', { ...group, message: 'hi' }, { addressed: 'overheard' }),
    arrival(
      'a mention',
      'JsonMention',
      { ...group, message: '\uFFFC hi', mentions: [{ name: 'Bot', number: ACCOUNT, uuid: 'c', start: 0, length: 1 }] },
      { text: 'hi', addressed: 'mention' },
    ),
    arrival(
      'a quote of another person',
      'JsonQuote',
      { ...group, message: 'what does she mean?', quote },
      { inReplyTo: id, quoted: { id, author: { id: '+15559998888' }, text: 'ticket 4711 burns' } },
    ),
    arrival('a quote of the bot', 'JsonQuote', { ...group, message: 'why?', quote: ofBot }, { addressed: 'reply' }),
    arrival(
      'a quote of an own message with a picture',
      'JsonQuotedAttachment',
      { message: 'this', quote: { ...ofAda, text: '', attachments: [picture] } },
      {
        quoted: {
          id: `${ADA}/1767225500000`,
          by: 'sender',
          author: { id: '+15550002222' },
          text: '',
          attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { id: 't.png' } }],
        },
      },
    ),
    arrival(
      'a shared contact',
      'JsonSharedContact',
      { contacts: [{ name: { given: 'Bob', family: 'Ray' }, phone: [{ value: '+15551234567', type: 'MOBILE' }] }] },
      { things: [{ kind: 'contact', text: 'Bob Ray, +15551234567' }] },
    ),
    arrival('a sticker', 'JsonSticker', { sticker: { packId: 'p', stickerId: 1 } }, { things: [{ kind: 'sticker', text: '' }] }),
    arrival(
      'a preview of a page',
      'JsonPreview',
      { message: 'see https://x.test/', previews: [{ url: 'https://x.test/', title: 'Page', description: 'words' }] },
      { things: [{ kind: 'link', text: 'Page, words, https://x.test/' }] },
    ),
    arrival(
      'a poll',
      'JsonPollCreate',
      { pollCreate: { question: 'Lunch?', allowMultiple: false, options: ['Pizza', 'Sushi'] } },
      { things: [{ kind: 'poll', text: 'Lunch?: Pizza; Sushi' }] },
    ),
    arrival('a payment', 'JsonPayment', { payment: { note: 'for tea', receipt: '' } }, { things: [{ kind: 'payment', text: 'for tea' }] }),
    arrival('content of a later version', 'JsonDataMessage', { hologram: { id: 1 } }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
    arrival(
      'a deletion by an administrator',
      'JsonAdminDelete',
      { ...group, adminDelete: { targetAuthorUuid: EVE, targetAuthor: '+15559998888', targetSentTimestamp: 1_767_225_500_000 } },
      { text: '', changes: { message: id, what: 'deleted' } },
    ),
  ],
}
