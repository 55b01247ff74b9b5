/** What people can send on the platform, as events of Matrix. */
import type { Members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const SPEC = 'https://spec.matrix.org/v1.12/client-server-api/#'

function arrival(
  what: string,
  section: string,
  content: object,
  expect: RecordedArrival['expect'],
  type = 'm.room.message',
): RecordedArrival {
  const payload = { event_id: '$2', sender: '@ada:example.org', origin_server_ts: 1_767_225_600_000, type, content }
  return { what, source: `${SPEC}${section}`, payload, expect }
}
/** An event that a proposal describes, as clients send it. */
const beyond = (what: string, msc: number, type: string, content: object, expect: RecordedArrival['expect']): RecordedArrival => ({
  ...arrival(what, '', content, expect, type),
  source: `https://github.com/matrix-org/matrix-spec-proposals/pull/${msc}`,
})
const reply = (author: string) => ({
  msgtype: 'm.text',
  body: `> <${author}> ticket 4711 burns\n> at noon\n\nwhat does she mean?`,
  'm.relates_to': { 'm.in_reply_to': { event_id: '$1' } },
})
const quoted = (id: string) => ({ id: '$1', author: { id }, text: 'ticket 4711 burns\nat noon' })
const poll = { question: { 'org.matrix.msc1767.text': 'Lunch?' }, answers: [{ id: '1', 'org.matrix.msc1767.text': 'Pizza' }] }

export const fedchatArrivals: ArrivalSubject = {
  parse(payload) {
    const bot = {
      account: 'a',
      userId: '@bot:example.org',
      name: 'Bot',
      mentionOnly: false,
      isDirect: () => false,
      nameOf: (_: string, user: string) => (user === '@ada:example.org' ? 'Ada' : ''),
      pressed: () => undefined,
    }
    return [parse(payload as Members, '!r', bot) ?? []].flat()
  },
  never: { forwarded: 'Matrix does not tell forwarded messages apart' },
  recorded: [
    arrival(
      'a call',
      'mcallinvite',
      { call_id: '12345', lifetime: 60_000, version: '1', party_id: '67890', offer: { type: 'offer', sdp: 'v=0' } },
      { text: '', things: [{ kind: 'call', text: '' }] },
      'm.call.invite',
    ),
    beyond(
      'the ring of a call of several people',
      4075,
      'org.matrix.msc4075.rtc.notification',
      {
        notification_type: 'ring',
        lifetime: 30_000,
        'm.mentions': { user_ids: ['@bot:example.org'], room: false },
      },
      { addressed: 'mention', things: [{ kind: 'call', text: '' }] },
    ),
    beyond(
      'a live location',
      3489,
      'org.matrix.msc3672.beacon_info',
      {
        description: 'on my way',
        live: true,
        'org.matrix.msc3488.ts': 1_767_225_600_000,
        timeout: 60_000,
        'org.matrix.msc3488.asset': { type: 'm.self' },
      },
      { things: [{ kind: 'location', text: 'shared live, on my way' }] },
    ),
    beyond(
      'a live location without a description',
      3489,
      'm.beacon_info',
      { live: true, 'm.ts': 1_767_225_600_000, timeout: 60_000, 'm.asset': { type: 'm.self' } },
      { things: [{ kind: 'location', text: 'shared live' }] },
    ),
    arrival('a text', 'mtext', { msgtype: 'm.text', body: 'hi' }, { text: 'hi', addressed: 'overheard' }),
    arrival(
      'a mention',
      'user-and-room-mentions',
      { msgtype: 'm.text', body: 'Bot: hi', 'm.mentions': { user_ids: ['@bot:example.org'] } },
      { text: 'hi', addressed: 'mention' },
    ),
    arrival('an emote', 'memote', { msgtype: 'm.emote', body: 'waves' }, { text: '* waves' }),
    arrival('a reply to another person', 'rich-replies', reply('@eve:example.org'), {
      text: 'what does she mean?',
      inReplyTo: '$1',
      quoted: quoted('@eve:example.org'),
    }),
    arrival('a reply to the bot', 'rich-replies', reply('@bot:example.org'), { quoted: { ...quoted('@bot:example.org'), by: 'bot' } }),
    arrival('a reply to an own message', 'rich-replies', reply('@ada:example.org'), {
      quoted: { ...quoted('@ada:example.org'), by: 'sender' },
    }),
    arrival(
      'a picture without an address',
      'mimage',
      { msgtype: 'm.image', body: 'which?', filename: 'cat.png' },
      { text: 'which?', things: [{ kind: 'unknown', text: 'm.image that cannot be read, cat.png' }] },
    ),
    {
      ...arrival(
        'several pictures with a caption',
        '',
        {
          msgtype: 'dm.filament.gallery',
          body: 'which of them?',
          itemtypes: [
            { itemtype: 'm.image', body: 'a.png', url: 'mxc://example.org/a', info: { mimetype: 'image/png' } },
            { itemtype: 'm.image', body: 'b.png', url: 'mxc://example.org/b', info: { mimetype: 'image/png' } },
          ],
        },
        {
          text: 'which of them?',
          attachments: [
            { kind: 'image', name: 'a.png', mime: 'image/png', source: { id: '{"url":"mxc://example.org/a"}' } },
            { kind: 'image', name: 'b.png', mime: 'image/png', source: { id: '{"url":"mxc://example.org/b"}' } },
          ],
        },
      ),
      source: 'https://github.com/matrix-org/matrix-spec-proposals/pull/4274',
    },
    {
      ...arrival(
        'a gallery with a picture without an address, a place and more files than are read',
        '',
        {
          msgtype: 'm.gallery',
          body: '',
          itemtypes: [
            { itemtype: 'm.image', body: 'b.png' },
            { itemtype: 'm.location', body: 'office', geo_uri: 'geo:52.5,4.7' },
            ...Array.from({ length: 20 }, (_, at) => ({ itemtype: 'constructor', body: '', at })),
          ],
        },
        {
          text: '',
          things: [
            { kind: 'unknown', text: 'm.image that cannot be read, b.png' },
            { kind: 'location', text: '52.5, 4.7: office' },
            ...Array.from({ length: 18 }, () => ({ kind: 'unknown' as const, text: 'constructor' })),
            { kind: 'unknown', text: '2 more files of a gallery' },
          ],
        },
      ),
      source: 'https://github.com/matrix-org/matrix-spec-proposals/pull/4274',
    },
    arrival(
      'a poll in a thread',
      'threading',
      { 'org.matrix.msc3381.poll.start': poll, 'm.relates_to': { rel_type: 'm.thread', event_id: '$1' } },
      {
        to: { to: '!r', thread: '$1', replyTo: '$2', more: { sender: '@ada:example.org' } },
        things: [{ kind: 'poll', text: 'Lunch?: Pizza' }],
      },
      'org.matrix.msc3381.poll.start',
    ),
    arrival(
      'an edit of a poll',
      'event-replacements',
      {
        'org.matrix.msc3381.poll.start': poll,
        'm.relates_to': { rel_type: 'm.replace', event_id: '$1' },
        'm.new_content': { 'org.matrix.msc3381.poll.start': poll },
      },
      { things: [{ kind: 'poll', text: 'Lunch?: Pizza' }], changes: { message: '$1', what: 'edited' } },
      'org.matrix.msc3381.poll.start',
    ),
    arrival(
      'a location',
      'mlocation',
      { msgtype: 'm.location', body: 'Office', geo_uri: 'geo:52.37,4.89;u=10' },
      { things: [{ kind: 'location', text: '52.37, 4.89: Office' }] },
    ),
    arrival(
      'a sticker',
      'msticker',
      { body: 'Wave', url: 'mxc://x/1', info: {} },
      { things: [{ kind: 'sticker', text: 'Wave' }] },
      'm.sticker',
    ),
    {
      ...arrival('a poll', '', { 'm.poll': poll }, { things: [{ kind: 'poll', text: 'Lunch?: Pizza' }] }, 'm.poll.start'),
      source: 'https://github.com/matrix-org/matrix-spec-proposals/blob/main/proposals/3381-polls.md',
    },
    arrival(
      'content of a later version',
      'mroommessage',
      { msgtype: 'm.hologram', body: 'a hologram' },
      { text: 'a hologram', things: [{ kind: 'unknown', text: 'm.hologram' }] },
    ),
  ],
}
