/** What people can send on the platform, as events of QQ's bot API. */
import { members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseEvent } from '../parse.ts'

const DOCS = 'https://bot.q.qq.com/wiki/develop/api-v2/autogen/event/c2c_message_create.html'
const CLIENTS = 'public QQ bot clients of 2026 that parse the event (parseFaceTags, msg_elements)'
const BOT = '0F1E2D3C4B5A69788796A5B4C3D2E1F0'
const jpeg = { content_type: 'image/jpeg', filename: 'a.jpg', size: 9, url: 'https://multimedia.nt.qq.com.cn/x' }
const image = { kind: 'image', name: 'a.jpg', mime: 'image/jpeg', source: { url: jpeg.url } } as const

function direct(what: string, source: string, data: object, expect: RecordedArrival['expect']): RecordedArrival {
  const d = { id: 'ROBOT1.0_b', author: { user_openid: 'U1' }, content: '', timestamp: '2026-07-21T10:30:00+08:00', ...data }
  return { what, source, payload: { t: 'C2C_MESSAGE_CREATE', d }, expect }
}
function group(what: string, t: string, data: object, expect: RecordedArrival['expect']): RecordedArrival {
  const d = { id: 'ROBOT1.0_a', author: { member_openid: 'M1' }, group_openid: 'G1', timestamp: '2026-07-21T10:30:00+08:00', ...data }
  return { what, source: CLIENTS, payload: { t, d }, expect }
}

export const qqArrivals: ArrivalSubject = {
  parse(payload) {
    const { t, d } = members(payload)
    return parseEvent(typeof t === 'string' ? t : '', d, { account: '1' })
  },
  never: { forwarded: 'QQ does not tell forwarded messages apart' },
  recorded: [
    direct('a text', DOCS, { content: 'hi' }, { text: 'hi', addressed: 'direct' }),
    direct('a picture', DOCS, { attachments: [jpeg] }, { attachments: [image] }),
    direct('a face', CLIENTS, { content: '<faceType=1,faceId="13",ext="eyJ0ZXh0Ijoi5ZGy54mZIn0="> thanks' }, { text: '[呲牙] thanks' }),
    direct('a face without a name', CLIENTS, { content: '<faceType=1,faceId="13",ext="x">' }, { text: '[face 13]' }),
    direct(
      'the card of a friend, of which QQ sends only the type',
      'a recorded event of 2025 in https://github.com/wwweibu/Lrobot/blob/main/storage/record/msg_lr232.md',
      { message_scene: { source: 'default', ext: ['msg_idx=REFIDX_1'] }, message_type: 3 },
      { text: '', things: [{ kind: 'unknown', text: 'ark' }] },
    ),
    direct(
      'a file without an address',
      DOCS,
      { attachments: [{ ...jpeg, url: '' }] },
      { text: '', things: [{ kind: 'unknown', text: 'image/jpeg, a.jpg' }] },
    ),
    group('a mention', 'GROUP_AT_MESSAGE_CREATE', { content: ' hello' }, { text: 'hello', addressed: 'mention' }),
    group(
      'a mention in a group whose bot gets all messages',
      'GROUP_MESSAGE_CREATE',
      {
        author: { member_openid: 'M1', username: 'Li' },
        content: `<@${BOT}> what is due today?`,
        mentions: [{ member_openid: BOT, is_you: true }],
      },
      { name: 'Li', text: 'what is due today?', addressed: 'mention' },
    ),
    group(
      'a text in a group whose bot gets all messages',
      'GROUP_MESSAGE_CREATE',
      { content: 'lunch?', mentions: [] },
      { text: 'lunch?', addressed: 'overheard', overheardOnly: true },
    ),
    group(
      'a quote with a picture',
      'GROUP_AT_MESSAGE_CREATE',
      {
        content: ' what is it?',
        message_type: 103,
        msg_elements: [{ msg_idx: 'REFIDX_1', content: 'ticket 4711 burns', attachments: [jpeg] }],
      },
      { text: 'what is it?', quoted: { id: 'REFIDX_1', text: 'ticket 4711 burns', attachments: [image] } },
    ),
  ],
}
