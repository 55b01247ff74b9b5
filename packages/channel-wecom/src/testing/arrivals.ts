/** What people can send to an AI bot, as messages of WeCom's long connection. */
import type { Members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseBot } from '../parse-bot.ts'

const DOCS = 'https://developer.work.weixin.qq.com/document/path/100719'

function arrival(what: string, body: object, expect: RecordedArrival['expect']): RecordedArrival {
  const payload = { msgid: 'm1', aibotid: 'aib', chatid: 'wrk1', chattype: 'group', from: { userid: 'zhangsan' }, ...body }
  return { what, source: DOCS, payload, expect }
}
const image = { kind: 'image', name: 'image', source: { url: 'https://example.com/x#a2V5' } } as const
const text = { msgtype: 'text', text: { content: '@RobotA what is it?' } }

export const wecomArrivals: ArrivalSubject = {
  parse: (payload) => parseBot(payload as Members, { botId: 'aib', request: 'r', nowMs: 1 }),
  never: { forwarded: 'WeCom does not tell forwarded messages apart' },
  recorded: [
    arrival('a text in a group', text, { text: 'what is it?', addressed: 'mention' }),
    arrival('a direct text', { chattype: 'single', msgtype: 'text', text: { content: 'hi' } }, { text: 'hi', addressed: 'direct' }),
    arrival('a picture', { msgtype: 'image', image: { url: 'https://example.com/x', aeskey: 'a2V5' } }, { attachments: [image] }),
    arrival('a voice message', { msgtype: 'voice', voice: { content: 'hello' } }, { text: 'hello' }),
    arrival('a quote', { ...text, quote: { msgtype: 'text', text: { content: 'old\nwords' } } }, { quoted: { text: 'old\nwords' } }),
    arrival(
      'a quoted picture',
      { ...text, quote: { msgtype: 'image', image: { url: 'https://example.com/x', aeskey: 'a2V5' } } },
      { text: 'what is it?', quoted: { text: '', attachments: [image] } },
    ),
    arrival(
      'a text with a file and with content of a later version',
      {
        msgtype: 'mixed',
        mixed: {
          msg_item: [
            text,
            { msgtype: 'file', file: { url: 'https://example.com/x', aeskey: 'a2V5' } },
            { msgtype: 'hologram', hologram: {} },
          ],
        },
      },
      {
        text: 'what is it?',
        attachments: [{ kind: 'file', name: 'file', source: { url: 'https://example.com/x#a2V5' } }],
        things: [{ kind: 'unknown', text: 'hologram' }],
      },
    ),
    arrival(
      'content of a later version with words',
      { msgtype: 'hologram', hologram: { title: 'A torus', spin: 2 } },
      { things: [{ kind: 'unknown', text: 'hologram, A torus' }] },
    ),
    arrival('content of a later version', { msgtype: 'hologram' }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
  ],
}
