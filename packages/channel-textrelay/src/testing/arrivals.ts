/** What people can send on the platform, as webhook events of Linq. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

/** The types of this version name the members of all parts. */
const SDK = '`resources/webhooks.d.ts` of `@linqapp/sdk` 0.28.2, https://www.npmjs.com/package/@linqapp/sdk'
const BOT = '+15550001111'
const chat = { id: 'chat-1', is_group: false, owner_handle: { id: 'h-0', handle: BOT, is_me: true, service: 'iMessage' } }

function arrival(what: string, data: object, expect: RecordedArrival['expect'], type = 'message.received'): RecordedArrival {
  const sender = { id: 'h-1', handle: '+15550003333', is_me: false, service: 'iMessage' }
  const common = { id: 'msg-1', chat, direction: 'inbound', service: 'iMessage', sender_handle: sender, sent_at: '2026-01-01T00:00:00Z' }
  const payload = {
    api_version: 'v3',
    webhook_version: '2026-02-03',
    event_type: type,
    event_id: 'event-1',
    created_at: '2026-01-01T00:00:01Z',
    data: { ...common, ...data },
  }
  return { what, source: SDK, payload, expect }
}
const parts = (...all: readonly object[]) => ({ parts: all })
const text = { type: 'text', value: 'hi', reactions: null }
const media = (filename: string, mime: string) => ({
  type: 'media',
  id: 'a-1',
  filename,
  mime_type: mime,
  size_bytes: 3,
  url: 'https://cdn.example/a',
  reactions: null,
})
const source = { url: 'https://cdn.example/a' }

export const textrelayArrivals: ArrivalSubject = {
  parse: (payload) => parse({ body: Buffer.from(JSON.stringify(payload)) }, { fromPhone: BOT }),
  never: {
    quoted: 'Linq sends only the id of the message that is answered; the daemon adds the words that it knows',
    forwarded: 'iMessage does not tell forwards apart',
  },
  recorded: [
    arrival('a text', parts(text), { text: 'hi', addressed: 'direct', to: { to: 'chat-1', more: { handle: '+15550003333' } } }),
    arrival('a text in a group', { ...parts(text), chat: { ...chat, is_group: true } }, { addressed: 'overheard', to: { to: 'chat-1' } }),
    arrival('a reply', { ...parts(text), reply_to: { message_id: 'msg-0', part_index: 0 } }, { text: 'hi', inReplyTo: 'msg-0' }),
    arrival('a text with an effect', { ...parts(text), effect: { name: 'confetti', type: 'screen' } }, { text: 'hi' }),
    arrival('a picture', parts(media('a.heic', 'image/heic')), {
      attachments: [{ kind: 'image', name: 'a.heic', mime: 'image/heic', source }],
    }),
    arrival('a voice message', parts(media('Memo.caf', 'audio/x-caf')), {
      attachments: [{ kind: 'audio', name: 'Memo.caf', mime: 'audio/x-caf', source }],
    }),
    arrival('a video', parts(media('a.mov', 'video/quicktime')), {
      attachments: [{ kind: 'video', name: 'a.mov', mime: 'video/quicktime', source }],
    }),
    arrival('a contact, which is a file', parts(media('Bob.vcf', 'text/vcard')), {
      attachments: [{ kind: 'file', name: 'Bob.vcf', mime: 'text/vcard', source }],
    }),
    arrival('a text with a file', parts(text, media('a.pdf', 'application/pdf')), {
      text: 'hi',
      attachments: [{ kind: 'file', name: 'a.pdf', mime: 'application/pdf', source }],
    }),
    arrival('a file without an address', parts({ ...media('a.pdf', 'application/pdf'), url: null }), {
      text: '',
      things: [{ kind: 'unknown', text: 'media, a.pdf' }],
    }),
    arrival('a link', parts({ type: 'link', value: 'https://example.com/', reactions: null }), { text: 'https://example.com/' }),
    arrival(
      'a message of an app',
      parts({
        type: 'imessage_app',
        app: { bundle_id: 'com.example.poll', name: 'Polls', team_id: 'T1' },
        url: 'https://example.com/poll',
        fallback_text: 'Lunch?',
        layout: { caption: 'Lunch?', subcaption: 'Pizza or soup', trailing_caption: null },
        reactions: null,
      }),
      { things: [{ kind: 'link', text: 'Polls, Lunch?, Pizza or soup, https://example.com/poll' }] },
    ),
    arrival('a part of a later version', parts(text, { type: 'hologram' }), {
      text: 'hi',
      things: [{ kind: 'unknown', text: 'hologram' }],
    }),
    arrival(
      'an edit',
      { edited_at: '2026-01-01T00:00:59Z', part: { index: 0, text: 'ho' } },
      { id: 'event-1', text: 'ho', changes: { message: 'msg-1', what: 'edited', only: 'text' } },
      'message.edited',
    ),
  ],
}
