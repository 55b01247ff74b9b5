/** What people can send on the platform, as events of Nostr that the bot has decrypted. */
import { members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { createRumor } from 'nostr-tools/nip59'
import { encodeFile } from '../encrypted-file.ts'
import { type Rumor, readRumor } from '../event.ts'
import { parseLegacy, parsePrivate } from '../parse.ts'
import { pubkeyOf, secretKeyOfPerson } from './people.ts'

const NIPS = 'https://github.com/nostr-protocol/nips/blob/master'
const [BOT, ADA, BOB] = ['bot', 'ada', 'bob'].map(pubkeyOf) as [string, string, string]
const EARLIER = 'e'.repeat(64)
const RELAY = 'wss://relay.example'

interface Written {
  readonly kind?: number
  readonly content?: string
  readonly tags?: readonly (readonly string[])[]
  readonly to?: readonly string[]
}

const rumorOf = (name: string, { kind = 14, content = '', tags = [], to = [BOT] }: Written) =>
  createRumor(
    { kind, created_at: 1_767_225_600, tags: [...to.map((key) => ['p', key]), ...tags.map((tag) => [...tag])], content },
    secretKeyOfPerson(name),
  )

const arrival = (what: string, nip: number, written: Written, expect: RecordedArrival['expect']): RecordedArrival => ({
  what,
  source: `${NIPS}/${String(nip).padStart(2, '0')}.md`,
  payload: rumorOf('ada', written),
  expect: { sender: ADA, account: BOT, ...expect },
})
const unknown = (text: string) => ({ text: '', things: [{ kind: 'unknown' as const, text }] })
const file = [
  ['file-type', 'image/jpeg'],
  ['encryption-algorithm', 'aes-gcm'],
  ['decryption-key', '0'.repeat(64)],
  ['decryption-nonce', '1'.repeat(24)],
  ['x', '2'.repeat(64)],
]
const attachment = {
  kind: 'image' as const,
  name: 'a.jpg',
  mime: 'image/jpeg',
  source: {
    id: encodeFile({ url: 'https://files.example/a.jpg', key: '0'.repeat(64), nonce: '1'.repeat(24), hash: '2'.repeat(64) }),
  },
}
const post = rumorOf('bob', { kind: 1, content: 'the words of Bob', to: [] })
const article = rumorOf('bob', { kind: 30_023, content: 'the words of Bob', to: [] })
const repostToBob = { kind: 6, content: JSON.stringify(post), to: [BOB, BOT], tags: [['e', post.id, RELAY]] }
const passedOn = { from: { kind: 'person' as const, id: BOB }, text: 'the words of Bob' }

/** The text of a legacy message was decrypted from its content, which here is the text itself. */
const read = (rumor: Rumor) => (rumor.kind === 4 ? parseLegacy(rumor, rumor.content, BOT) : parsePrivate(rumor, BOT))

export const relaynetArrivals: ArrivalSubject = {
  parse(payload) {
    const rumor = readRumor(members(payload))
    return rumor ? read(rumor) : []
  },
  never: { quoted: 'Nostr sends only the id of the message that is answered; the daemon adds the words that it knows' },
  recorded: [
    arrival('a text', 17, { content: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a reply', 17, { content: 'yes', tags: [['e', EARLIER, RELAY]] }, { text: 'yes', inReplyTo: EARLIER }),
    arrival('a reply with a marker', 17, { content: 'yes', tags: [['e', EARLIER, RELAY, 'reply']] }, { text: 'yes', inReplyTo: EARLIER }),
    arrival('a text in a group', 17, { content: 'lunch?', to: [BOT, BOB] }, { text: 'lunch?', addressed: 'overheard' }),
    arrival('a text with a new subject', 17, { content: 'hi', tags: [['subject', 'Lunch']] }, { text: 'hi' }),
    arrival('a legacy text', 4, { kind: 4, content: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a picture', 17, { kind: 15, content: 'https://files.example/a.jpg', tags: file }, { text: '', attachments: [attachment] }),
    arrival(
      'a file with an encryption that is not supported',
      17,
      {
        kind: 15,
        content: 'https://files.example/a.jpg',
        tags: [
          ['file-type', 'image/jpeg'],
          ['encryption-algorithm', 'rot13'],
        ],
      },
      { text: '[A file that cannot be decrypted, because its encryption is not supported]' },
    ),
    arrival('a deletion', 9, { kind: 5, tags: [['e', EARLIER]] }, { changes: { message: EARLIER, what: 'deleted' } }),
    arrival('a repost', 18, { kind: 6, content: JSON.stringify(post), tags: [['e', post.id, RELAY]] }, { text: '', forwarded: passedOn }),
    arrival('a repost that names its author as a person concerned', 18, repostToBob, {
      to: { to: ADA, replyTo: rumorOf('ada', repostToBob).id },
      addressed: 'direct',
      forwarded: passedOn,
    }),
    arrival(
      'a repost of another kind',
      18,
      {
        kind: 16,
        content: JSON.stringify(article),
        tags: [
          ['e', article.id, RELAY],
          ['k', '30023'],
        ],
      },
      { forwarded: passedOn },
    ),
    arrival('a repost without its event', 18, { kind: 6, tags: [['e', post.id, RELAY]] }, unknown('kind 6')),
    arrival('a repost of something else', 18, { kind: 6, content: '{"content":"?"}' }, { forwarded: { text: '{"content":"?"}' } }),
    arrival('a note', 10, { kind: 1, content: 'to everybody' }, { ...unknown('kind 1'), forwarded: { text: 'to everybody' } }),
    arrival(
      'a poll',
      88,
      {
        kind: 1068,
        content: 'Lunch?',
        tags: [
          ['option', 'a', 'Pizza'],
          ['option', 'b', 'Soup'],
        ],
      },
      { text: '', things: [{ kind: 'poll', text: 'Lunch?: Pizza; Soup' }] },
    ),
    arrival('an event of a later kind', 1, { kind: 9999, content: 'h' }, { ...unknown('kind 9999'), forwarded: { text: 'h' } }),
  ],
}
