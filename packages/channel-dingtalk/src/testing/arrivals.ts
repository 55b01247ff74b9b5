/** What people can send to a robot, as messages of DingTalk's stream mode. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parse } from '../parse.ts'

const DOCS = 'https://open.dingtalk.com/document/orgapp/receive-message'

function arrival(what: string, body: object, expect: RecordedArrival['expect']): RecordedArrival {
  const common = {
    conversationId: 'cid1',
    chatbotUserId: '$:LWCP_v1:$bot',
    msgId: 'msg1',
    senderStaffId: 'user123',
    senderId: '$:LWCP_v1:$s',
    conversationType: '2',
    createAt: 1_767_225_600_000,
  }
  return { what, source: DOCS, payload: { ...common, ...body }, expect }
}
const replied = (repliedMsg: object) => ({ msgtype: 'text', text: { content: ' what is it?', isReplyMsg: true, repliedMsg } })
const image = { kind: 'image', name: 'picture', source: { id: 'code1' } } as const

export const dingtalkArrivals: ArrivalSubject = {
  parse: (payload) => parse(payload, { account: 'd' }),
  recorded: [
    arrival('a text in a group', { msgtype: 'text', text: { content: ' hi' } }, { text: 'hi', addressed: 'mention' }),
    arrival('a direct text', { conversationType: '1', msgtype: 'text', text: { content: 'hi' } }, { addressed: 'direct' }),
    arrival('a picture', { msgtype: 'picture', content: { downloadCode: 'code1' } }, { attachments: [image] }),
    arrival('a quote', replied({ msgType: 'text', msgId: 'msg0', senderId: '$:LWCP_v1:$t', content: { text: 'ticket 4711 burns' } }), {
      text: 'what is it?',
      inReplyTo: 'msg0',
      quoted: { id: 'msg0', author: { id: '$:LWCP_v1:$t' }, text: 'ticket 4711 burns' },
    }),
    arrival('a quote of the bot', replied({ msgType: 'text', msgId: 'msg0', senderId: '$:LWCP_v1:$bot', content: { text: 'done' } }), {
      quoted: { id: 'msg0', by: 'bot', author: { id: '$:LWCP_v1:$bot' }, text: 'done' },
    }),
    arrival(
      'a quoted picture',
      replied({ msgType: 'picture', msgId: 'msg0', senderId: '$:LWCP_v1:$t', content: { downloadCode: 'code1' } }),
      { quoted: { id: 'msg0', author: { id: '$:LWCP_v1:$t' }, text: '', attachments: [image] } },
    ),
    arrival('a quoted card', replied({ msgType: 'interactiveCard', msgId: 'msg0', senderId: '$:LWCP_v1:$t' }), {
      quoted: {
        ...{ id: 'msg0', author: { id: '$:LWCP_v1:$t' } },
        text: '[a message of a kind that this channel does not know: interactiveCard]',
      },
    }),
    {
      ...arrival(
        'messages that are passed on together',
        {
          msgtype: 'chatRecord',
          content: {
            summary: 'Ben: ticket 4711…',
            chatRecord: JSON.stringify([
              { senderName: 'Ben', msgType: 'text', content: 'ticket 4711 burns' },
              { senderName: 'Eve', msgType: 'picture' },
            ]),
          },
        },
        { text: '', forwarded: { text: 'Ben: ticket 4711 burns' } },
      ),
      source: 'public DingTalk clients of 2026 that read chatRecord',
    },
    {
      ...arrival(
        'a quote of messages that were passed on together',
        replied({
          msgType: 'chatRecord',
          msgId: 'msg0',
          senderId: '$:LWCP_v1:$t',
          content: { title: 'Chat of Ben', summary: 'Ben: it burns' },
        }),
        { quoted: { id: 'msg0', author: { id: '$:LWCP_v1:$t' }, text: 'Chat of Ben\nBen: it burns' } },
      ),
      source: 'public DingTalk clients of 2026 that read chatRecord',
    },
    arrival(
      'content of a later version with words',
      { msgtype: 'hologram', content: { title: 'A torus', spin: 2 } },
      { things: [{ kind: 'unknown', text: 'hologram, A torus' }] },
    ),
    arrival('content of a later version', { msgtype: 'hologram' }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
  ],
}
