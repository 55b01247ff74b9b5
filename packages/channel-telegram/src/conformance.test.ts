import type { Inbound } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { telegramArrivals } from './testing/arrivals.ts'
import { startTelegramFake, TELEGRAM_TOKEN } from './testing/fake.ts'

const TOKEN = '700100:telegram-Bot_Token-01-abcdefghijklm'
const ada = { id: 1001, is_bot: false, first_name: 'Ada', username: 'ada' }
const chat = { id: -100_200, type: 'group' }

const UPDATES = [
  { update_id: 11, message: { message_id: 5, from: ada, chat, date: 1_767_225_600, text: 'any news?' } },
  { update_id: 12, message: { message_id: 6, from: { ...ada, is_bot: true }, chat, date: 1_767_225_601, text: 'I am a bot' } },
  { update_id: 13, callback_query: { id: '42', from: ada, message: { message_id: 4, chat, date: 1 }, data: 'yes' } },
]
const shared = { account: '700100', sender: '1001' }
const GOLDEN: readonly Inbound[] = [
  {
    ...shared,
    name: 'Ada',
    id: '-100200:5',
    to: { to: '-100200', replyTo: '5' },
    text: 'any news?',
    addressed: 'overheard',
    sentAtMs: 1_767_225_600_000,
  },
  { ...shared, id: 'cb:42', to: { to: '-100200', replyTo: '4' }, text: '', pressed: { message: '-100200:4', value: 'yes' } },
]

const result = (value: unknown) => Response.json({ ok: true, result: value })
const untilAborted = ({ signal }: Request): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { bot_token: TOKEN, allowed_users: ['1001'], notification_chat_id: -100_200 },
  allowKey: 'allowed_users',
  secrets: [TOKEN, TOKEN.slice(7)],
  arrivals: telegramArrivals,
  send: {
    to: { to: '-100200', thread: '7', replyTo: '5' },
    answer: () => result({ message_id: 17, chat, date: 1_767_225_600, text: 'hello' }),
    id: '-100200:17',
  },
  listen: {
    host: () => ({
      async fetch(input, init) {
        const request = new Request(input, init)
        if (request.url.endsWith('/getMe')) return result({ id: 700_100, is_bot: true, username: 'sluice_bot' })
        if (request.url.endsWith('/answerCallbackQuery')) return result(true)
        const { offset = 0 } = (await request.clone().json()) as { offset?: number }
        const waiting = UPDATES.filter(({ update_id }) => update_id >= offset)
        return waiting.length > 0 ? result(waiting) : untilAborted(request)
      },
    }),
    expect: GOLDEN,
    async platform() {
      const platform = await startTelegramFake()
      return {
        fake: platform,
        config: { bot_token: TELEGRAM_TOKEN, api_url: platform.url, allowed_users: ['*'] },
        say: (text) => void platform.say({ text }),
        refuse: () => platform.changeToken('700100:another'),
      }
    },
  },
})
