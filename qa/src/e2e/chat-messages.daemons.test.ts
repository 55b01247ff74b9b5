/** Messages of the chats through the whole daemon: each is answered once, in its conversation, through restarts and faults. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import { describe, expect, test } from 'vitest'
import { chatDaemons } from '../daemons/chat-daemon.ts'
import { CHATS } from '../daemons/chats.ts'

const start = chatDaemons()
const OFFLINE = '[provider]\nkind = "offline"\n'

/** The messages that were answered, sorted by id: messages of two threads may be answered in any order. */
const answered = (chat: Chat): readonly (string | undefined)[] =>
  chat
    .sent()
    .map((answer) => answeredBy(chat, answer))
    .toSorted()
const answeredBy = ({ answersIn }: Chat, { replyTo, thread }: Shown): string | undefined => (answersIn === 'thread' ? thread : replyTo)

describe.each(CHATS)('%s', (name) => {
  test('answers a message once, in its conversation', async () => {
    const { chat: chatOf, until, idle } = await start({ chats: [name], toml: OFFLINE })
    const chat = chatOf(name)
    const asked = chat.say({ text: 'good morning' })
    await until(() => chat.sent().length > 0)
    await idle()
    expect(chat.sent()).toMatchObject([{ place: chat.places.talk, text: expect.stringContaining('good morning') }])
    expect(answered(chat)).toEqual([asked])
  })

  test('answers messages written while the daemon was down, each once', async () => {
    const { chat: chatOf, until, idle, down, up } = await start({ chats: [name], toml: OFFLINE })
    const chat = chatOf(name)
    const asked = [chat.say({ text: 'one' })]
    await until(() => chat.sent().length === 1)
    await idle()
    await down()
    asked.push(chat.say({ text: 'two' }), chat.say({ text: 'three' }))
    await up()
    await until(() => chat.sent().length === 3)
    asked.push(chat.say({ text: 'four' }))
    await until(() => chat.sent().length === 4)
    await down()
    await up()
    await idle()
    expect(answered(chat)).toEqual(asked)
  })

  test('does not answer a stranger', async () => {
    const { chat: chatOf, until, idle } = await start({ chats: [name], toml: OFFLINE })
    const chat = chatOf(name)
    chat.say({ text: 'let me in', from: chat.people.eve })
    const asked = chat.say({ text: 'hello' })
    await until(() => chat.sent().length > 0)
    await idle()
    expect(answered(chat)).toEqual([asked])
  })

  test('answers messages written while the connection breaks, each once', async () => {
    const { chat: chatOf, until, idle } = await start({ chats: [name], toml: OFFLINE })
    const chat = chatOf(name)
    const asked = [chat.say({ text: 'first' })]
    await until(() => chat.sent().length === 1)
    for (let round = 0; round < 3; round++) {
      asked.push(chat.say({ text: `before ${round}` }))
      chat.drop()
      asked.push(chat.say({ text: `after ${round}` }))
      await until(() => chat.isConnected)
    }
    await until(() => chat.sent().length >= asked.length)
    await idle()
    expect(answered(chat)).toEqual(asked.toSorted())
  })
})
