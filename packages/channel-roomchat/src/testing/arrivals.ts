/** What people can send on the platform, as webhook events of its bots. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const BOTS = 'https://github.com/nextcloud/spreed/blob/main/docs/bots.md'
const OBJECTS = 'https://github.com/nextcloud/server/blob/master/lib/public/RichObjectStrings/Definitions.php'
const ROOM = 'n3xtc10ud'
const actor = { type: 'Person', id: 'users/ada-lovelace', name: 'Ada Lovelace', talkParticipantType: '1' }

const note = (id: string, message: string, parameters: object = [], name = 'message') => ({
  type: 'Note',
  id,
  name,
  content: JSON.stringify({ message, parameters }),
  mediaType: 'text/markdown',
})
const event = (object: object, type = 'Create') => ({
  type,
  actor,
  object,
  target: { type: 'Collection', id: ROOM, name: 'world' },
})

const arrival = (what: string, payload: object, expect: RecordedArrival['expect'], source = BOTS): RecordedArrival => ({
  what,
  source,
  payload,
  expect: { to: { to: ROOM, replyTo: '1567' }, sender: 'ada-lovelace', ...expect },
})
const written = (what: string, object: object, expect: RecordedArrival['expect']) => arrival(what, event(object), expect)

/** A file or another object in a message; `name` is empty until Talk 23. */
function shared(what: string, message: string, parameters: object, expect: RecordedArrival['expect'], name = ''): RecordedArrival {
  const all = { actor: { type: 'user', id: 'ada-lovelace', name: 'Ada Lovelace' }, ...parameters }
  return arrival(what, event(note('1567', message, all, name), 'Activity'), expect, OBJECTS)
}
const file = (name: string, mimetype: string) => ({
  file: { type: 'file', id: '9', name, size: '3', path: name, link: 'https://nextcloud.local/f/9', mimetype },
})
const url = 'https://nextcloud.local/f/9'

export const roomchatArrivals: ArrivalSubject = {
  parse: (payload) => parse({ body: Buffer.from(JSON.stringify(payload)) }, { account: 'nextcloud.local', botName: 'Sluice Bot' }),
  never: { forwarded: 'Nextcloud Talk sends a forwarded message as one of the sender' },
  recorded: [
    written('a text', note('1567', 'hi'), { text: 'hi', addressed: 'overheard' }),
    written(
      'a text with a mention of the room',
      note('1567', 'hi {mention-call1} !', { 'mention-call1': { type: 'call', id: ROOM, name: 'world', 'call-type': 'group' } }),
      { text: 'hi world !' },
    ),
    written('a text that names the bot', note('1567', '@Sluice Bot hi'), { text: 'hi', addressed: 'mention' }),
    written(
      'a reply',
      {
        ...note('1567', 'the second'),
        inReplyTo: { actor: { type: 'Person', id: 'users/bob', name: 'Bob' }, object: note('1560', 'which one?') },
      },
      { text: 'the second', quoted: { id: `${ROOM}/1560`, author: { id: 'bob', name: 'Bob' }, text: 'which one?' } },
    ),
    written(
      'a reply to the bot',
      {
        ...note('1567', 'yes'),
        inReplyTo: { actor: { type: 'Application', id: 'bots/bot-1', name: 'Sluice Bot' }, object: note('1560', 'Shall I?') },
      },
      { addressed: 'reply', quoted: { id: `${ROOM}/1560`, author: { id: 'bots/bot-1', name: 'Sluice Bot' }, by: 'bot', text: 'Shall I?' } },
    ),
    written(
      'a reply to a picture',
      {
        ...note('1567', 'nice'),
        inReplyTo: {
          actor: { type: 'Person', id: 'users/bob', name: 'Bob' },
          object: note('1560', '{file}', file('cat.png', 'image/png')),
        },
      },
      {
        quoted: {
          id: `${ROOM}/1560`,
          author: { id: 'bob', name: 'Bob' },
          text: '',
          attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { url } }],
        },
      },
    ),
    written(
      'a reply to a poll',
      {
        ...note('1567', 'pizza'),
        inReplyTo: {
          actor: { type: 'Person', id: 'users/bob', name: 'Bob' },
          object: note('1560', '{object}', { object: { type: 'talk-poll', id: '7', name: 'Lunch?' } }),
        },
      },
      { text: 'pizza', quoted: { id: `${ROOM}/1560`, author: { id: 'bob', name: 'Bob' }, text: '[poll Lunch?]' } },
    ),
    shared('a picture', '{file}', file('cat.png', 'image/png'), {
      text: '',
      attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { url } }],
    }),
    shared('a file with a caption', 'read this', file('a.pdf', 'application/pdf'), {
      text: 'read this',
      attachments: [{ kind: 'file', name: 'a.pdf', mime: 'application/pdf', source: { url } }],
    }),
    shared(
      'a voice message',
      '{file}',
      file('Talk recording.mp3', 'audio/mpeg'),
      { attachments: [{ kind: 'audio', name: 'Talk recording.mp3', mime: 'audio/mpeg', source: { url } }] },
      'file_shared',
    ),
    shared('a contact, which is a file', '{file}', file('Bob.vcf', 'text/vcard'), {
      attachments: [{ kind: 'file', name: 'Bob.vcf', mime: 'text/vcard', source: { url } }],
    }),
    shared(
      'a location',
      '{object}',
      { object: { type: 'geo-location', id: 'geo:52.5,13.4', name: 'Office', latitude: '52.5', longitude: '13.4' } },
      { things: [{ kind: 'location', text: '52.5, 13.4: Office' }] },
      'object_shared',
    ),
    shared(
      'a poll',
      '{object}',
      { object: { type: 'talk-poll', id: '7', name: 'Lunch?' } },
      { things: [{ kind: 'poll', text: 'Lunch?' }] },
      'object_shared',
    ),
    shared(
      'a card of a board',
      '{object}',
      { object: { type: 'deck-card', id: '1', name: 'Write', boardname: 'Team', stackname: 'To do', link: 'https://nextcloud.local/1' } },
      { things: [{ kind: 'link', text: 'Write, Team, To do, https://nextcloud.local/1' }] },
      'object_shared',
    ),
    shared(
      'an object of a later version',
      '{object}',
      { object: { type: 'hologram', id: '1', name: 'H' } },
      { things: [{ kind: 'unknown', text: 'hologram, H' }] },
      'object_shared',
    ),
  ],
}
