/** The Telegram fake as a `Chat`. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import type { ProviderRequest } from '@sluice/testkit/fake-provider'
import { startTelegramFake, TELEGRAM_GROUP, TELEGRAM_TOKEN } from './fake.ts'
import type { TelegramMessage } from './fake-chats.ts'

const PEOPLE = { ada: '1001', bob: '1002', eve: '1666' }
const PRIVATE = PEOPLE.ada
const OTHER_GROUP = -100_400

/** Starts the fake with one private chat and two groups. */
export async function chat(): Promise<Chat> {
  const fake = await startTelegramFake({
    chats: [
      { id: Number(PRIVATE), type: 'private' },
      { id: TELEGRAM_GROUP, type: 'group' },
      { id: OTHER_GROUP, type: 'group' },
    ],
  })
  const places = { talk: PRIVATE, notify: String(TELEGRAM_GROUP), other: String(OTHER_GROUP) }
  const user = (id: string) => ({ id: Number(id), username: `user${id}` })
  const find = (message: string): TelegramMessage => {
    const [chat = '', id = ''] = message.split(':')
    const found = fake.messages(Number(chat)).find((candidate) => candidate.id === Number(id))
    if (!found) throw new Error(`message ${message} does not exist`)
    return found
  }
  const calls =
    (...methods: readonly string[]) =>
    ({ path }: ProviderRequest) =>
      methods.some((method) => path.endsWith(`/${method}`))
  return {
    name: 'telegram',
    answersIn: 'quote',
    people: PEOPLE,
    places,
    config: {
      bot_token: TELEGRAM_TOKEN,
      allowed_users: [PEOPLE.ada, PEOPLE.bob],
      notification_chat_id: places.notify,
      api_url: fake.url,
    },
    get isConnected() {
      return fake.polled
    },
    say({ text, from = PEOPLE.ada, place = places.talk, thread, replyTo }) {
      const { id, chat } = fake.say({
        text,
        from: user(from),
        chat: Number(place),
        ...(thread !== undefined && { thread: Number(thread) }),
        ...(replyTo !== undefined && { replyTo: find(replyTo).id }),
      })
      return `${chat}:${id}`
    },
    press: ({ message, value, from = PEOPLE.ada }) => void fake.press({ message: find(message), data: value, from: user(from) }),
    sent: () => fake.sent().map(shown),
    threadOf: ({ id, place }) => ({ place, replyTo: id }),
    drop: () => fake.fail({ fault: 'reset' }, { matches: calls('getUpdates') }),
    failSend: (fault, times = 1) =>
      fake.fail(fault, { times, matches: calls('sendMessage', 'sendPhoto', 'sendDocument', 'sendAudio', 'sendVideo') }),
    failEdit: (fault, times = 1) => fake.fail(fault, { times, matches: calls('editMessageText') }),
    get requests() {
      return fake.requests
    },
    get previews() {
      return fake.drafts.map(({ text }) => text)
    },
    get typing() {
      return fake.actions.length
    },
    close: () => fake.close(),
  }
}

const shown = ({ id, chat, text, thread, replyTo, buttons = [], file, edits }: TelegramMessage): Shown => ({
  id: `${chat}:${id}`,
  place: String(chat),
  text,
  ...(thread !== undefined && { thread: String(thread) }),
  ...(replyTo !== undefined && { replyTo: `${chat}:${replyTo}` }),
  buttons: buttons.flat(),
  files: file ? [{ name: file.name, text: Buffer.from(file.bytes).toString() }] : [],
  isEdited: edits > 0,
})
