/** Faults between the daemon and the chats: no message is lost, and no message is sent or handled twice. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import { describe, expect, test } from 'vitest'
import { type ChatDaemon, chatDaemons } from '../daemons/chat-daemon.ts'
import { CHATS, targetOf } from '../daemons/chats.ts'

const start = chatDaemons()
const OFFLINE = '[provider]\nkind = "offline"\n'
/** The chats whose platform knows a repeated message by the id that we gave it: there such a reply is sent again. */
const KNOWS_REPEATS = ['discord']
/** The clock step while a test waits for several seconds. */
const LONG_STEP_MS = 200

const REQUEST = {
  type: 'human_approval_request',
  content: { title: 'Deploy 1.2?', message: 'All tests pass.' },
  run_id: 'run-1',
  step_id: 'deploy',
  workflow_name: 'release',
}

const isDecided = async (daemon: ChatDaemon) => (await daemon.approval('run-1', 'deploy'))?.state !== 'pending'
const promptIn = (chat: Chat): Shown | undefined => chat.sent().find(({ buttons }) => buttons.length > 0)
const messagesIn = (chat: Chat, text: string) => chat.sent().filter((shown) => shown.text === text)
const states = async ({ daemon }: ChatDaemon) =>
  (await daemon.runtime.store.outbox.list({ limit: 100 })).map(({ state }) => state).toReversed()

describe.each(CHATS)('%s', (name) => {
  test('sends a reply once, after the delay of Retry-After', async () => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const chat = daemon.chat(name)
    chat.failSend({ fault: 'status', status: 429, headers: { 'retry-after': '7' }, body: {} })
    chat.failSend({ fault: 'status', status: 503, headers: { 'retry-after': '7' }, body: {} })
    const beganMs = daemon.clock.nowMs()
    chat.say({ text: 'hello' })
    await daemon.until(() => chat.sent().length > 0, LONG_STEP_MS)
    expect(daemon.clock.nowMs() - beganMs).toBeGreaterThanOrEqual(14_000)
    await daemon.idle()
    expect(await states(daemon)).toEqual(['sent'])
    expect(chat.sent()).toHaveLength(1)
  })

  test.each([
    ['a server error', { fault: 'status', status: 500, body: {} }, 0],
    ['a broken connection', { fault: 'reset' }, 0],
    ['a lost answer', { fault: 'lost' }, 1],
    ['an invalid answer', { fault: 'garbage' }, 1],
  ] as const)('a reply whose outcome is not known after %s is not shown twice', async (_, fault, arrived) => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const chat = daemon.chat(name)
    const [state, shown] = KNOWS_REPEATS.includes(name) ? ['sent', 1] : ['ambiguous', arrived]
    chat.failSend(fault)
    chat.say({ text: 'one' })
    await daemon.until(async () => (await states(daemon))[0] === state)
    await daemon.pass(600_000)
    chat.say({ text: 'two' })
    await daemon.until(() => chat.sent().length === shown + 1)
    await daemon.idle()
    expect(await states(daemon)).toEqual([state, 'sent'])
    expect(chat.sent()).toHaveLength(shown + 1)
  })

  test('sends a delayed prompt once, and it can be answered', async () => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const chat = daemon.chat(name)
    chat.failSend({ fault: 'status', status: 429, headers: { 'retry-after': '5' }, body: {} }, 2)
    await daemon.post('/api/channel-events', { ...REQUEST, channels: [targetOf(name)] })
    const prompt = await daemon.until(() => promptIn(chat), LONG_STEP_MS)
    await daemon.idle()
    chat.press({ message: prompt.id, value: prompt.buttons[0] ?? '' })
    await daemon.until(() => isDecided(daemon))
    await daemon.idle()
    expect(chat.sent().filter(({ text }) => text.startsWith('Deploy 1.2?'))).toMatchObject([{ id: prompt.id, buttons: [] }])
  })

  test('retries a confirmation and the edit of the prompt until both succeed', async () => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const chat = daemon.chat(name)
    await daemon.post('/api/channel-events', { ...REQUEST, channels: [targetOf(name)] })
    const prompt = await daemon.until(() => promptIn(chat))
    await daemon.idle()
    chat.failSend({ fault: 'status', status: 503, headers: { 'retry-after': '3' }, body: {} }, 2)
    chat.failEdit({ fault: 'status', status: 500, body: {} })
    chat.failEdit({ fault: 'lost' })
    chat.press({ message: prompt.id, value: prompt.buttons[1] ?? '' })
    await daemon.until(() => isDecided(daemon))
    const verdict = `Rejected by ${name}:${chat.people.ada}`
    await daemon.until(() => messagesIn(chat, verdict).length > 0, LONG_STEP_MS)
    await daemon.until(() => chat.sent().some(({ id, buttons }) => id === prompt.id && buttons.length === 0), LONG_STEP_MS)
    await daemon.idle()
    expect(messagesIn(chat, verdict)).toMatchObject([chat.threadOf(prompt)])
    expect((await states(daemon)).filter((state) => state !== 'sent')).toEqual([])
  })

  test('a button pressed while the connection breaks decides once', async () => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const chat = daemon.chat(name)
    await daemon.post('/api/channel-events', { ...REQUEST, channels: [targetOf(name)] })
    const prompt = await daemon.until(() => promptIn(chat))
    await daemon.idle()
    chat.drop()
    chat.press({ message: prompt.id, value: prompt.buttons[0] ?? '' })
    await daemon.until(() => isDecided(daemon))
    await daemon.idle()
    expect(await daemon.approval('run-1', 'deploy')).toMatchObject({ state: 'approved', by: `${name}:${chat.people.ada}` })
    expect(messagesIn(chat, `Approved by ${name}:${chat.people.ada}`)).toHaveLength(1)
    expect(daemon.events.filter(({ type }) => type === 'human_approval_resolved')).toHaveLength(1)
  })
})

test('the other chats ask and confirm while one chat cannot be reached', async () => {
  const daemon = await start({ toml: OFFLINE })
  const [telegram, discord, slack] = [daemon.chat('telegram'), daemon.chat('discord'), daemon.chat('slack')]
  discord.failSend({ fault: 'status', status: 503, headers: { 'retry-after': '60' }, body: {} }, 3)
  await daemon.post('/api/channel-events', { ...REQUEST, channels: ['community', 'workspace', 'messenger'] })
  const prompt = await daemon.until(() => promptIn(telegram))
  await daemon.until(() => promptIn(slack))
  telegram.press({ message: prompt.id, value: prompt.buttons[0] ?? '' })
  await daemon.until(() => isDecided(daemon))
  const verdict = `Approved by telegram:${telegram.people.ada}`
  for (const chat of [telegram, slack]) await daemon.until(() => messagesIn(chat, verdict).length === 1)
  expect(discord.sent()).toEqual([])
  await daemon.until(() => messagesIn(discord, verdict).length === 1, 1000)
  // A prompt that is sent after the decision shows it and has no buttons.
  expect(discord.sent()[0]).toMatchObject({ buttons: [], text: `Deploy 1.2?\n\nAll tests pass.\n\n${verdict}` })
})
