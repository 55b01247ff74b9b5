/** What people can send on the platform, as events of Lark. */
import { members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseEvent } from '../parse.ts'

const DOCS = 'https://open.larksuite.com/document/server-docs/im-v1/message-content-description/message_content'

function arrival(
  what: string,
  message_type: string,
  content: object | string,
  expect: RecordedArrival['expect'],
  more: object = {},
): RecordedArrival {
  const message = {
    message_id: 'om_1',
    chat_id: 'oc_1',
    chat_type: 'p2p',
    create_time: '1767225600000',
    message_type,
    content: typeof content === 'string' ? content : JSON.stringify(content),
    ...more,
  }
  const sender = { sender_id: { open_id: 'ou_ada' }, sender_type: 'user' }
  return { what, source: DOCS, payload: { header: { event_type: 'im.message.receive_v1' }, event: { sender, message } }, expect }
}
const group = { chat_type: 'group', mentions: [{ key: '@_user_1', id: { open_id: 'ou_bot' }, name: 'Bot' }] }

export const workchatArrivals: ArrivalSubject = {
  parse: (payload) => parseEvent(members(payload), { account: 'a', openId: 'ou_bot', mentionOnly: false, threadReplies: true }),
  never: { quoted: 'Lark sends only the id of the quoted message, which the channel reads; connection.test.ts tests it' },
  recorded: [
    arrival('a text', 'text', { text: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a mention', 'text', { text: '@_user_1 hi' }, { text: 'hi', addressed: 'mention' }, group),
    arrival('a quote', 'text', { text: 'why?' }, { inReplyTo: 'om_0' }, { parent_id: 'om_0' }),
    arrival(
      'a location',
      'location',
      { name: 'Tea house', latitude: '39.9', longitude: '116.3' },
      { things: [{ kind: 'location', text: '39.9, 116.3: Tea house' }] },
    ),
    arrival(
      'a location with objects in the place of texts',
      'location',
      { name: { toString: 1 }, latitude: '39.9', longitude: '116.3' },
      { things: [{ kind: 'location', text: '39.9, 116.3' }] },
    ),
    arrival('a sticker', 'sticker', { file_key: 'k' }, { things: [{ kind: 'sticker', text: '' }] }),
    arrival(
      'a task',
      'todo',
      { task_id: 't1', summary: { title: '', content: [[{ tag: 'text', text: 'write the report' }]] }, due_time: '1767225600000' },
      { things: [{ kind: 'checklist', text: 'write the report' }] },
    ),
    arrival('a vote', 'vote', { topic: 'Lunch?', options: ['Pizza', 'Sushi'] }, { things: [{ kind: 'poll', text: 'Lunch? Pizza Sushi' }] }),
    arrival('an appointment', 'calendar', { summary: 'Review', start_time: '1' }, { things: [{ kind: 'event', text: 'Review' }] }),
    arrival(
      'a card that is passed on',
      'interactive',
      { title: 'Alert', elements: [[{ tag: 'text', text: 'ticket 4711 burns' }]] },
      { text: '', forwarded: { text: 'Alert ticket 4711 burns' } },
    ),
    arrival('messages that are passed on together', 'merge_forward', 'Merged and Forwarded Message', {
      forwarded: { text: '[merge_forward]' },
    }),
    arrival('content of a later version', 'hologram', { title: 'H' }, { things: [{ kind: 'unknown', text: 'hologram, H' }] }),
  ],
}
