/** What people can send on the platform, as webhook events of the Messaging API. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const DOCS = 'https://developers.line.biz/en/reference/messaging-api/#message-event'
const EDITS = 'https://github.com/line/line-bot-sdk-java/pull/1932'
const BOT = 'Ubbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
const group = { source: { type: 'group', groupId: 'Ccccccccccccccccccccccccccccccccc', userId: 'Uaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' } }

function arrival(what: string, message: object, expect: RecordedArrival['expect'], more: object = {}): RecordedArrival {
  const event = {
    type: 'message',
    mode: 'active',
    timestamp: 1_767_225_601_000,
    webhookEventId: '01KE',
    replyToken: 'rt2',
    source: { type: 'user', userId: 'Uaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' },
    message: { id: '325708', ...message },
    ...more,
  }
  return { what, source: 'type' in more ? EDITS : DOCS, payload: { destination: BOT, events: [event] }, expect }
}
const mention = { mention: { mentionees: [{ index: 0, length: 4, type: 'user', userId: BOT, isSelf: true }] } }

export const lineArrivals: ArrivalSubject = {
  parse: (payload) => parse({ body: Buffer.from(JSON.stringify(payload)) }, { groupPolicy: 'open', groupSenders: undefined }),
  never: {
    quoted: 'LINE sends only the id of the quoted message; the daemon adds the words that it knows',
    forwarded: 'LINE does not tell forwards apart',
  },
  recorded: [
    arrival('a text', { type: 'text', text: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a text in a group', { type: 'text', text: 'hi' }, { addressed: 'overheard' }, group),
    arrival('a mention', { type: 'text', text: '@Bot hi', ...mention }, { text: 'hi', addressed: 'mention' }, group),
    arrival('a quote', { type: 'text', text: 'why?', quotedMessageId: '325700' }, { inReplyTo: '325700' }),
    arrival('a picture', { type: 'image' }, { attachments: [{ kind: 'image', name: 'image', source: { id: '325708' } }] }),
    arrival(
      'a picture of a set',
      { type: 'image', imageSet: { id: 'E005D41A7288F41B65593ED38FF6E9834B046AB36A37921A56BC236F13A91855', index: 1, total: 2 } },
      { group: { id: 'E005D41A7288F41B65593ED38FF6E9834B046AB36A37921A56BC236F13A91855' } },
    ),
    arrival(
      'a location',
      { type: 'location', title: 'Office', address: '1 Way', latitude: 35.6, longitude: 139.7 },
      { things: [{ kind: 'location', text: '35.6, 139.7: Office, 1 Way' }] },
    ),
    arrival('a sticker', { type: 'sticker', keywords: ['cony', 'sally'] }, { things: [{ kind: 'sticker', text: 'cony, sally' }] }),
    arrival('content of a later version', { type: 'hologram' }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
    arrival(
      'an edit',
      { type: 'text', text: 'the corrected words' },
      {
        id: 'edit:325708:1767225601000',
        text: 'the corrected words',
        addressed: 'overheard',
        changes: { message: '325708', what: 'edited', only: 'text' },
      },
      { type: 'messageEdited', ...group },
    ),
  ],
}
