/** Approvals that a program asks for in all chats at once, and that people answer there: see docs/contract.md#approvals. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import { expect, test } from 'vitest'
import { type ChatDaemon, chatDaemons } from '../daemons/chat-daemon.ts'
import { CHATS } from '../daemons/chats.ts'

const start = chatDaemons()
const OFFLINE = { toml: '[provider]\nkind = "offline"\n' }

const REQUEST = {
  type: 'human_approval_request',
  content: { title: 'Deploy 1.2?', message: 'All tests pass.' },
  channels: ['community', 'workspace', 'messenger', 'dashboard'],
  run_id: 'run-1',
  step_id: 'deploy',
  workflow_name: 'release',
}

const approvalOf = (daemon: ChatDaemon) => daemon.approval('run-1', 'deploy')

/** A daemon with one open approval, and its prompt in each chat. */
async function asked(request: object = {}): Promise<ChatDaemon & { promptOf(name: string): Shown }> {
  const daemon = await start(OFFLINE)
  await daemon.post('/api/channel-events', { ...REQUEST, ...request })
  await daemon.idle()
  const prompts = new Map(daemon.chats.map((chat) => [chat.name, chat.sent()[0] ?? missing(chat)]))
  return Object.assign(daemon, { promptOf: (name: string): Shown => prompts.get(name) ?? missing({ name }) })
}

const missing = ({ name }: Pick<Chat, 'name'>): never => {
  throw new Error(`The chat ${name} has no prompt.`)
}

/** The values of the buttons of a prompt. */
const [approve, reject] = [({ buttons }: Shown) => buttons[0] ?? '', ({ buttons }: Shown) => buttons[1] ?? '']

/** Expects that in every chat the prompt shows the verdict without buttons, and that its thread has one message with it. */
async function expectConfirmed(daemon: Awaited<ReturnType<typeof asked>>, verdict: string): Promise<void> {
  await daemon.until(async () => (await approvalOf(daemon))?.acknowledgedAtMs !== null)
  await daemon.idle()
  for (const name of CHATS) {
    const chat = daemon.chat(name)
    const prompt = daemon.promptOf(name)
    const now = chat.sent().find(({ id }) => id === prompt.id)
    expect(now, name).toMatchObject({ buttons: [], isEdited: true, text: expect.stringMatching(/^Deploy 1\.2\?\n\nAll tests pass\.\n\n/) })
    expect(now?.text.endsWith(verdict), `${name}: ${now?.text}`).toBe(true)
    const confirmations = chat.sent().filter(({ id, text }) => id !== prompt.id && text === verdict)
    expect(confirmations, name).toMatchObject([chat.threadOf(prompt)])
  }
}

test('prompts every notification target, lists the targets in the answer and emits an event', async () => {
  const daemon = await start(OFFLINE)
  const { status, body } = await daemon.post('/api/channel-events', { ...REQUEST, timeout: 600 })
  expect({ status, body }).toMatchObject({
    status: 200,
    body: {
      ok: true,
      channels: [
        { channel: 'community', status: 'queued', outbox: [expect.any(Number)] },
        { channel: 'workspace', status: 'queued', outbox: [expect.any(Number)] },
        { channel: 'messenger', status: 'queued', outbox: [expect.any(Number)] },
        { channel: 'dashboard', status: 'broadcast' },
      ],
      approval: { run_id: 'run-1', step_id: 'deploy', state: 'pending', expires_at: expect.any(String) },
    },
  })
  await daemon.idle()
  for (const name of CHATS) {
    const chat = daemon.chat(name)
    expect(chat.sent(), name).toMatchObject([
      {
        place: chat.places.notify,
        text: expect.stringMatching(/^Deploy 1\.2\?\n\nAll tests pass\.\n\nReply with one of: `approve`/),
        buttons: [expect.any(String), expect.any(String)],
      },
    ])
  }
  const { events, until } = daemon
  await until(() => events.some(({ type }) => type === 'channel_event'))
  expect(events.find(({ type }) => type === 'channel_event')).toMatchObject({ payload: { run_id: 'run-1', content: REQUEST.content } })
  expect(events.filter(({ type }) => type === 'human_approval_request')).toMatchObject([
    { run_id: 'run-1', step_id: 'deploy', workflow_name: 'release', title: 'Deploy 1.2?', message: 'All tests pass.' },
  ])
})

test.each(CHATS)('%s: a button decides, and every chat shows once who pressed it', async (name) => {
  const daemon = await asked()
  const { chat: chatOf, promptOf, until } = daemon
  const { people } = chatOf(name)
  chatOf(name).press({ message: promptOf(name).id, value: approve(promptOf(name)), from: people.bob })
  await until(async () => (await approvalOf(daemon))?.state !== 'pending')
  const by = `${name}:${people.bob}`
  expect(await approvalOf(daemon)).toMatchObject({ state: 'approved', by, feedback: null })
  await expectConfirmed(daemon, `Approved by ${by}`)
  await until(() => daemon.events.some(({ type }) => type === 'human_approval_resolved'))
  expect(daemon.events.filter(({ type }) => type === 'human_approval_resolved')).toMatchObject([
    { run_id: 'run-1', step_id: 'deploy', approved: true, state: 'approved', by },
  ])
})

test.each<[name: string, how: string, at: (chat: Chat, prompt: Shown) => object]>([
  ['telegram', 'a reply to the prompt', (_, { id, place }) => ({ place, replyTo: id })],
  ['discord', 'a reply to the prompt', (_, { id, place }) => ({ place, replyTo: id })],
  ['discord', 'a message in the thread of the prompt', (chat, prompt) => chat.threadOf(prompt)],
  ['slack', 'a message in the thread of the prompt', (chat, prompt) => chat.threadOf(prompt)],
])('%s: %s decides, with the text after the keyword as feedback', async (name, _, at) => {
  const first = await asked()
  const { chat: chatOf, promptOf, until } = first
  const chat = chatOf(name)
  chat.say({ ...at(chat, promptOf(name)), text: ' LGTM ' })
  await until(async () => (await approvalOf(first))?.state !== 'pending')
  expect(await approvalOf(first)).toMatchObject({ state: 'approved', by: `${name}:${chat.people.ada}`, feedback: null })
  await first.post('/api/channel-events', { ...REQUEST, step_id: 'again' })
  await first.idle()
  const second = chat.sent().findLast(({ buttons }) => buttons.length > 0) ?? missing(chat)
  chat.say({ ...at(chat, second), text: 'reject too risky today' })
  await until(async () => (await first.approval('run-1', 'again'))?.state !== 'pending')
  expect(await first.approval('run-1', 'again')).toMatchObject({ state: 'rejected', feedback: 'too risky today' })
  await expectConfirmed(first, `Approved by ${name}:${chat.people.ada}`)
})

test.each(CHATS)('%s: no other sender, place or text decides', async (name) => {
  const daemon = await asked()
  const { chat: chatOf, promptOf, idle, pass } = daemon
  const chat = chatOf(name)
  const { people, places } = chat
  const prompt = promptOf(name)
  const unrelated = chat.say({ text: 'what is the time?', place: places.notify })
  const elsewhere = chat.say({ text: 'what is the time?', place: places.talk })
  await idle()
  const spot = chat.threadOf(prompt)

  // A stranger in the right place.
  chat.press({ message: prompt.id, value: approve(prompt), from: people.eve })
  chat.say({ ...spot, text: 'approve', from: people.eve })
  chat.say({ place: places.notify, replyTo: prompt.id, text: 'approve', from: people.eve })
  // An allowed sender in the wrong place.
  chat.say({ place: places.notify, text: 'approve' })
  chat.say({ place: places.talk, text: 'approve' })
  chat.say({ place: places.other, text: 'approve' })
  chat.say({ place: places.notify, replyTo: unrelated, text: 'approve' })
  chat.say({ place: places.talk, replyTo: elsewhere, text: 'approve' })
  chat.say({ ...spot, text: 'I approve' })
  chat.say({ ...spot, text: 'approved? not yet' })
  // Values that no button of the prompt has.
  const answer = chat.sent().find(({ id, place }) => id !== prompt.id && place === places.talk)
  for (const value of [
    '',
    'a.',
    'a.AAAAAAAAAAAAAAAA',
    'approve',
    `x${approve(prompt)}`,
    `${approve(prompt)}x`,
    approve(prompt).toUpperCase(),
  ])
    if (value !== '') chat.press({ message: prompt.id, value })
  // Its button, but for another message.
  if (answer) chat.press({ message: answer.id, value: approve(prompt) })
  await pass(60_000)
  expect(answer, 'the agent has replied').toBeDefined()
  expect(await approvalOf(daemon)).toMatchObject({ state: 'pending', by: null })
  expect(chat.sent().find(({ id }) => id === prompt.id)).toMatchObject({ buttons: prompt.buttons, isEdited: false })

  chat.press({ message: prompt.id, value: reject(prompt) })
  await daemon.until(async () => (await approvalOf(daemon))?.state !== 'pending')
  expect(await approvalOf(daemon)).toMatchObject({ state: 'rejected', by: `${name}:${people.ada}` })
})

test.each(CHATS)('%s: a late button changes nothing, and its presser learns the decision', async (name) => {
  const daemon = await asked()
  const { chat: chatOf, promptOf, until } = daemon
  const chat = chatOf(name)
  const press = (value: string, from: string) => chat.press({ message: promptOf(name).id, value, from })
  press(approve(promptOf(name)), chat.people.ada)
  await until(async () => (await approvalOf(daemon))?.acknowledgedAtMs !== null)
  press(reject(promptOf(name)), chat.people.ada)
  press(approve(promptOf(name)), chat.people.bob)
  const late = `Already approved by ${name}:${chat.people.ada}`
  await until(() => chat.sent().filter(({ text }) => text === late).length === 2)
  await expectConfirmed(daemon, `Approved by ${name}:${chat.people.ada}`)
})

test('one of several simultaneous answers decides, and the others learn the decision', async () => {
  const daemon = await asked()
  const { chat: chatOf, promptOf, until, events } = daemon
  chatOf('telegram').press({ message: promptOf('telegram').id, value: approve(promptOf('telegram')) })
  chatOf('discord').press({ message: promptOf('discord').id, value: reject(promptOf('discord')) })
  chatOf('slack').say({ ...chatOf('slack').threadOf(promptOf('slack')), text: 'no' })
  await until(async () => (await approvalOf(daemon))?.state !== 'pending')
  const decided = await approvalOf(daemon)
  const [winner = '', who = ''] = (decided?.by ?? '').split(':')
  expect(CHATS).toContain(winner)
  expect(decided?.state).toBe(winner === 'telegram' ? 'approved' : 'rejected')
  const late = `Already ${winner === 'telegram' ? 'approved' : 'rejected'} by ${winner}:${who}`
  const losers = CHATS.filter((name) => name !== winner)
  await until(() =>
    losers.every((name) =>
      chatOf(name)
        .sent()
        .some(({ text }) => text === late),
    ),
  )
  await expectConfirmed(daemon, late.replace('Already a', 'A').replace('Already r', 'R'))
  expect(events.filter(({ type }) => type === 'human_approval_resolved')).toHaveLength(1)
})

test('an approval survives a restart, and an answer given meanwhile decides it', async () => {
  const daemon = await asked()
  const { chat: chatOf, promptOf, until, down, up } = daemon
  await down()
  chatOf('slack').say({ ...chatOf('slack').threadOf(promptOf('slack')), text: 'approve after lunch' })
  await up()
  await until(async () => (await approvalOf(daemon))?.state !== 'pending')
  expect(await approvalOf(daemon)).toMatchObject({ state: 'approved', by: `slack:${chatOf('slack').people.ada}`, feedback: 'after lunch' })
  await expectConfirmed(daemon, `Approved by slack:${chatOf('slack').people.ada}: after lunch`)
})

test('an unanswered approval expires, and a later answer learns so', async () => {
  const daemon = await asked({ timeout: 60 })
  const { chat: chatOf, promptOf, until, pass } = daemon
  await pass(61_000)
  expect(await approvalOf(daemon)).toMatchObject({ state: 'expired', by: 'timeout' })
  await expectConfirmed(daemon, 'Expired: no answer in time')
  chatOf('discord').press({ message: promptOf('discord').id, value: approve(promptOf('discord')) })
  await until(() =>
    chatOf('discord')
      .sent()
      .some(({ text }) => text === 'Already expired: no answer in time'),
  )
  expect(await approvalOf(daemon)).toMatchObject({ state: 'expired' })
})
