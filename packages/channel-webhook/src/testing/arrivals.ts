/** The requests that a service can send to the channel, as its README describes them. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const README = 'the section "A message" of README.md'

const arrival = (what: string, changes: object, expect: RecordedArrival['expect']): RecordedArrival => ({
  what,
  source: README,
  payload: { id: 'm-1', sender: 'ada', content: 'hi', ...changes },
  expect: { id: 'm-1', sender: 'ada', ...expect },
})
const files = (count: number) => Array.from({ length: count }, (_, index) => ({ url: `https://files.example/${index}` }))

export const webhookArrivals: ArrivalSubject = {
  parse: (payload) => parse({ headers: {}, body: Buffer.from(JSON.stringify(payload)) }),
  never: {
    quoted: 'a message names only the id of the reply that it answers; the daemon adds the words that it knows',
    forwarded: 'a message has no member for words of others',
  },
  recorded: [
    arrival('a text', { sender_name: 'Ada' }, { text: 'hi', name: 'Ada', addressed: 'direct' }),
    arrival('a text in a thread', { thread_id: 'house' }, { to: { to: 'ada', thread: 'house', replyTo: 'm-1' } }),
    arrival('an answer', { in_reply_to: 'r-1' }, { text: 'hi', inReplyTo: 'r-1' }),
    arrival('a text with a time', { sent_at: '2026-01-01T00:00:00Z' }, { sentAtMs: 1_767_225_600_000 }),
    arrival(
      'a file',
      { content: undefined, attachments: [{ url: 'https://files.example/a.png', name: 'a.png', mime: 'image/png' }] },
      { text: '', attachments: [{ kind: 'image', name: 'a.png', mime: 'image/png', source: { url: 'https://files.example/a.png' } }] },
    ),
    arrival(
      'a text with a file that has no URL',
      { attachments: [{ name: 'a.png' }] },
      { text: 'hi', things: [{ kind: 'unknown', text: 'attachments without a URL: 1' }] },
    ),
    arrival('too many files', { attachments: files(22) }, { things: [{ kind: 'unknown', text: 'attachments beyond the first 20: 2' }] }),
    arrival('an edit', { edits: 'm-0' }, { text: 'hi', changes: { message: 'm-0', what: 'edited' } }),
    arrival('a deletion', { deletes: 'm-0' }, { text: '', changes: { message: 'm-0', what: 'deleted', by: 'sender' } }),
  ],
}
