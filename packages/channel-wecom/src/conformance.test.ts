import type { Inbound } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { afterAll, expect } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { wecomArrivals } from './testing/arrivals.ts'
import { BOT } from './testing/fake.ts'
import { APP, type Elements, envelope, queryOf, sealed, xml } from './testing/seal.ts'
import { connect } from './testing/section.ts'

const START_MS = Date.UTC(2026, 0, 1)
const SECS = START_MS / 1000
const { fake, section } = await connect({ nowMs: () => START_MS, isKept: true })
afterAll(() => fake.close())

const fixture = (name: string, elements: Elements, expected: readonly Inbound[]) => ({
  name,
  headers: { 'content-type': 'text/xml' },
  body: envelope(sealed(xml({ ToUserName: APP.corp_id, FromUserName: 'ada', CreateTime: SECS, ...elements, AgentID: APP.agent_id }))),
  expect: expected,
})
const base = { account: `${APP.corp_id}/${APP.agent_id}`, sender: 'ada', sentAtMs: START_MS }
const to = { to: 'user:ada', replyTo: '77', more: { way: 'app' } }
const file = (kind: 'image' | 'audio' | 'file', name: string) => [{ kind, name, source: { id: 'media-7' } }] as const
const more = { way: 'bot', request: expect.any(String), atMs: String(START_MS) }

channelConformance({
  names: ABILITIES.names,
  feature,
  config: section,
  allowKey: 'allowed_users',
  secrets: [APP.app_secret, APP.callback_token, APP.callback_aes_key, BOT.bot_secret],
  webhook: {
    fixtures: [
      fixture('text', { MsgType: 'text', Content: 'hello ]] > <b>', MsgId: 77 }, [
        { ...base, id: '77', to, addressed: 'direct', text: 'hello ]] > <b>' },
      ]),
      fixture('image', { MsgType: 'image', PicUrl: 'https://p.example/1', MediaId: 'media-7', MsgId: 77 }, [
        { ...base, id: '77', to, addressed: 'direct', text: '', attachments: file('image', 'image') },
      ]),
      fixture('voice', { MsgType: 'voice', MediaId: 'media-7', Format: 'amr', MsgId: 77 }, [
        { ...base, id: '77', to, addressed: 'direct', text: '', attachments: file('audio', 'voice.amr') },
      ]),
      fixture('location', { MsgType: 'location', Location_X: '23.1', Location_Y: '113.3', Scale: 20, Label: 'Tower', MsgId: 77 }, [
        { ...base, id: '77', to, addressed: 'direct', text: '', things: [{ kind: 'location', text: '23.1, 113.3: Tower' }] },
      ]),
      fixture(
        'press',
        { MsgType: 'event', Event: 'template_card_event', EventKey: 'approve:1', TaskId: 'c-1', CardType: 'button_interaction' },
        [
          {
            ...base,
            id: `c-1/ada/${START_MS}`,
            to: { to: 'user:ada', more: { way: 'app' } },
            text: '',
            pressed: { message: 'c-1', value: 'approve:1' },
          },
        ],
      ),
      fixture('own', { MsgType: 'event', Event: 'subscribe' }, []),
    ],
    own: 'own',
    secretKey: 'callback_token',
    prove: (body, atMs) => ({ query: queryOf(Buffer.from(body).toString(), Math.floor(atMs / 1000)) }),
  },
  arrivals: wecomArrivals,
  send: {
    to: { to: 'user:ada', replyTo: '77', more: { way: 'app' } },
    prior: ({ url }) =>
      url.includes('/gettoken?') ? Response.json({ errcode: 0, errmsg: 'ok', access_token: 'token-1', expires_in: 7200 }) : undefined,
    answer: () => Response.json({ errcode: 0, errmsg: 'ok', msgid: 'msg-1' }),
    id: 'msg-1',
  },
  listen: {
    host() {
      // A rule may leave messages behind that no connection took.
      fake.bot.forget()
      fake.say({ text: 'hello' })
      fake.say({ text: 'and here', chat: 'wrOps' })
      return { fetch }
    },
    expect: [
      {
        id: expect.any(String),
        account: BOT.bot_id,
        sender: 'ada',
        to: { to: 'user:ada', replyTo: expect.any(String), more },
        addressed: 'direct',
        text: 'hello',
        sentAtMs: START_MS,
      },
      {
        id: expect.any(String),
        account: BOT.bot_id,
        sender: 'ada',
        to: { to: 'chat:wrOps', replyTo: expect.any(String), more },
        addressed: 'mention',
        text: 'and here',
        sentAtMs: START_MS,
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const connected = await connect({ nowMs, isKept: true })
      return {
        fake: connected.fake,
        config: connected.section,
        say: (text) => void connected.fake.say({ text }),
        fallSilent: () => connected.fake.bot.mute(),
        refuse: () => connected.fake.changeSecrets(),
      }
    },
  },
  except: [
    { rule: 'the proof covers the raw bytes of any body', why: 'WeCom signs the encrypted text in a body, and not the body' },
    {
      rule: 'without a secret every request is accepted and the missing key is named',
      why: 'without the keys of an app there is no webhook, because an AI bot does not need one',
    },
    {
      rule: 'a message that was not durable when the process was killed is delivered again',
      why: 'the long connection has no acknowledgement, so WeCom forgets a message that it has written to it',
    },
  ],
})
