/** Tool calls that need approval, asked for in the conversation of the turn. See docs/contract.md#approvals. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Chat, Shown } from '@sluice/testkit/chat'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../daemons/bundle.ts'
import { type ChatDaemon, chatDaemons } from '../daemons/chat-daemon.ts'
import { chatFolder } from '../daemons/chat-folder.ts'
import { CHATS, startChats } from '../daemons/chats.ts'
import { MARK_FILES, type ShellModel, startShellModel } from '../daemons/shell-model.ts'
import { type SourceDaemon, startSourceDaemon } from '../daemons/source-daemon.ts'

const start = chatDaemons()
let model: ShellModel
beforeEach(async () => {
  model = await startShellModel()
})
afterEach(() => model.close())

/** How often the command has run. */
const runsIn = (dataDir: string): number => {
  const file = join(dataDir, 'workspace', 'ran.txt')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0
}

/** How many messages the daemon knows to be sent. */
function sentIn(dataDir: string): number {
  using db = new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true })
  return db.prepare("SELECT 1 FROM outbox WHERE state = 'sent'").all().length
}

const runs = ({ dataDir }: ChatDaemon): number => runsIn(dataDir)

const questionIn = (chat: Chat): Shown | undefined => chat.sent().findLast(({ buttons }) => buttons.length > 0)
const hasText = (chat: Chat, text: string) => chat.sent().some((shown) => shown.text.includes(text))

/** A daemon whose agent wants to run the command and has asked the sender. */
async function asking(name: string, toml = ''): Promise<{ daemon: ChatDaemon; chat: Chat; question: Shown; asked: string }> {
  const daemon = await start({ chats: [name], toml: model.toml + toml, files: MARK_FILES, isAdaOperator: true })
  const chat = daemon.chat(name)
  const asked = chat.say({ text: 'run it' })
  const question = await daemon.until(() => questionIn(chat))
  await daemon.sent()
  return { daemon, chat, question, asked }
}

describe.each(CHATS)('%s', (name) => {
  test('asks in the conversation, and runs the call after approval', async () => {
    const { daemon, chat, question, asked } = await asking(name)
    expect(question).toMatchObject({
      place: chat.places.talk,
      ...(chat.answersIn === 'thread' ? { thread: asked } : { replyTo: asked }),
      text: expect.stringMatching(/^shell wants to run\n\n```\ncommand: node mark\.mjs\n/),
    })
    expect(runs(daemon)).toBe(0)
    chat.press({ message: question.id, value: question.buttons[0] ?? '' })
    await daemon.until(() => hasText(chat, 'It says:'))
    await daemon.idle()
    expect(runs(daemon)).toBe(1)
    expect(model.results).toEqual([expect.stringContaining('marked')])
    expect(chat.sent().filter(({ text }) => text.startsWith('It says:'))).toHaveLength(1)
    expect(chat.sent().find(({ id }) => id === question.id)).toMatchObject({ buttons: [] })
  })

  test('runs nothing after a rejection, and the model gets the refusal', async () => {
    const { daemon, chat, question } = await asking(name)
    chat.say({ ...chat.threadOf(question), text: 'reject not today' })
    await daemon.until(() => hasText(chat, 'It says:'))
    await daemon.idle()
    expect(runs(daemon)).toBe(0)
    expect(model.results).toEqual([expect.stringMatching(/not|refuse|reject|denied/i)])
  })

  test('answers other senders while it waits; they and strangers cannot approve', async () => {
    const { daemon, chat, question } = await asking(name)
    const { people, places } = chat
    chat.say({ text: 'hello', from: people.bob, place: places.other })
    await daemon.until(() => hasText(chat, 'heard: hello'))
    chat.press({ message: question.id, value: question.buttons[0] ?? '', from: people.eve })
    chat.say({ ...chat.threadOf(question), text: 'yes', from: people.eve })
    chat.say({ text: 'yes', from: people.bob, place: places.other })
    await daemon.until(() => hasText(chat, 'heard: yes'))
    await daemon.clock.advance(1000)
    expect(runs(daemon)).toBe(0)
    expect(model.results).toEqual([])
  })

  test('keeps the question over a restart, and runs the call once', async () => {
    const { daemon, chat, question } = await asking(name)
    await daemon.down()
    expect(runs(daemon)).toBe(0)
    await daemon.up()
    await daemon.until(async () => (await daemon.daemon.runtime.store.inbox.counts()).running === 1)
    chat.press({ message: question.id, value: question.buttons[0] ?? '' })
    await daemon.until(() => hasText(chat, 'It says:'))
    await daemon.idle()
    expect(runs(daemon)).toBe(1)
    expect(chat.sent().filter(({ text }) => text.startsWith('shell wants to run'))).toHaveLength(1)
    expect(chat.sent().filter(({ text }) => text.startsWith('It says:'))).toHaveLength(1)
  })
})

test('a call without an answer in time does not run', async () => {
  const { daemon, chat } = await asking('telegram', '[approvals]\ntool_timeout_secs = 60\n')
  await daemon.clock.advance(61_000)
  await daemon.until(() => hasText(chat, 'It says:'))
  expect(runs(daemon)).toBe(0)
})

test('after SIGKILL no question is asked twice, and each call runs once', async () => {
  const chats = await startChats(CHATS)
  const { dataDir } = chatFolder({ chats, toml: model.toml, files: MARK_FILES, isAdaOperator: true })
  let daemon: SourceDaemon | undefined
  const up = async () => {
    daemon = await startSourceDaemon(dataDir)
    await eventually(
      async () => chats.every(({ isConnected }) => isConnected),
      (all) => all,
    )
  }
  const everyChatHas = (text: string) =>
    eventually(
      async () => chats.filter((chat) => hasText(chat, text)).length,
      (count) => count === chats.length,
    )
  try {
    await up()
    for (const chat of chats) chat.say({ text: 'run it' })
    await everyChatHas('shell wants to run')
    // A question whose outcome the daemon does not know is asked again after a kill.
    await eventually(
      async () => sentIn(dataDir),
      (sent) => sent === chats.length,
    )
    await daemon?.kill()
    await up()
    for (const chat of chats) {
      const question = questionIn(chat)
      chat.press({ message: question?.id ?? '', value: question?.buttons[0] ?? '' })
    }
    await everyChatHas('It says:')
    await daemon?.kill()
    expect(runsIn(dataDir)).toBe(chats.length)
    for (const chat of chats) expect(chat.sent().filter(({ text }) => text.startsWith('shell wants to run'))).toHaveLength(1)
  } finally {
    await daemon?.kill()
    await Promise.all(chats.map((chat) => chat.close()))
    rmSync(dataDir, { recursive: true, force: true })
  }
})
