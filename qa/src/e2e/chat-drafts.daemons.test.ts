/** Replies in chats: as drafts that grow, in several messages, and with files. See docs/contract.md#channels. */
import { rmSync } from 'node:fs'
import type { Chat } from '@sluice/testkit/chat'
import type { ModelReply } from '@sluice/testkit/model-script'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../daemons/bundle.ts'
import { type ChatDaemonOptions, chatDaemons } from '../daemons/chat-daemon.ts'
import { chatFolder } from '../daemons/chat-folder.ts'
import { CHATS, startChat } from '../daemons/chats.ts'
import { startSourceDaemon } from '../daemons/source-daemon.ts'

const start = chatDaemons()
let model: ModelServer
/** The next reply of the model. */
let reply: ModelReply
/** The replies of the model before that one. */
let calls: ModelReply[]
beforeEach(async () => {
  calls = []
  model = await startModelServer({ apiKey: null, answer: () => calls.shift() ?? reply })
})
afterEach(() => model.close())

const toml = () => `[provider]\nkind = "openai"\nbase_url = "${model.url}/v1"\nmodel = "test"\n`
const PARTIAL = { stream_mode: 'partial', draft_update_interval_ms: 300 }

async function begin(name: string, keys: ChatDaemonOptions['keys'] = {}, files: ChatDaemonOptions['files'] = {}) {
  const daemon = await start({ chats: [name], keys, files, toml: toml() })
  return { daemon, chat: daemon.chat(name) }
}

/** Says it where a draft is a message: previews are shown in private chats only. */
const ask = (chat: Chat): string => chat.say({ text: 'tell me', ...(chat.previews && { place: chat.places.other }) })

const WORDS = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

describe.each(CHATS)('%s', (name) => {
  test('stream_mode = "partial" edits one message from a placeholder to the whole reply', async () => {
    reply = { text: WORDS, chunkMs: 12 }
    const { daemon, chat } = await begin(name, PARTIAL)
    const asked = ask(chat)
    const seen = new Set<string>()
    await daemon.until(() => {
      const text = chat.sent()[0]?.text
      if (text !== undefined) seen.add(text)
      return text === WORDS
    })
    await daemon.idle()
    const [placeholder, ...growing] = seen
    expect(placeholder).toBe('…')
    expect(growing.length).toBeGreaterThan(2)
    expect(growing.slice(0, -1).every((text) => text.endsWith('…') && WORDS.startsWith(text.slice(0, -1).trimEnd()))).toBe(true)
    const [answer, ...others] = chat.sent()
    expect(others).toEqual([])
    expect(answer).toMatchObject({ text: WORDS, isEdited: true })
    expect(chat.answersIn === 'thread' ? answer?.thread : answer?.replyTo).toBe(asked)
  })

  test('after a restart the daemon continues the same draft', async () => {
    reply = { text: WORDS, chunkMs: 300 }
    const { daemon, chat } = await begin(name, PARTIAL)
    ask(chat)
    await daemon.until(() => chat.sent()[0]?.text.startsWith('word0'))
    await daemon.down()
    expect(chat.sent()).toMatchObject([{ text: expect.stringMatching(/^word0.*…$/) }])
    reply = { text: 'the end' }
    await daemon.up()
    await daemon.until(() => chat.sent()[0]?.text === 'the end')
    await daemon.idle()
    expect(chat.sent()).toHaveLength(1)
  })

  test('a reply longer than a message continues in further messages', async () => {
    reply = { text: Array.from({ length: 1500 }, (_, index) => `line ${index}`).join('\n') }
    const { daemon, chat } = await begin(name, PARTIAL)
    chat.say({ text: 'tell me' })
    await daemon.until(() => chat.sent().some(({ text }) => text.endsWith('line 1499')))
    await daemon.idle()
    expect(chat.sent().length).toBeGreaterThan(2)
    expect(
      chat
        .sent()
        .map(({ text }) => text)
        .join('\n'),
    ).toBe(reply.text)
  })

  test.each([
    ['without drafts', {}],
    ['with drafts', PARTIAL],
  ])('[FILE:path] sends a file that the turn read and no other file, %s', async (_, keys) => {
    reply = { text: 'Here it is. [FILE:notes/report.txt] [FILE:notes/unread.txt] [FILE:../config.toml] [FILE:/etc/hostname]' }
    calls = [{ toolCalls: [{ name: 'file_read', input: { path: 'notes/report.txt' } }] }]
    const { daemon, chat } = await begin(name, keys, { 'notes/report.txt': 'all is well', 'notes/unread.txt': 'nobody asked' })
    chat.say({ text: 'the report, please' })
    await daemon.until(() => chat.sent().some(({ files }) => files[0]?.text === 'all is well'))
    await daemon.idle()
    expect(chat.sent().flatMap(({ files }) => files)).toEqual([{ name: 'report.txt', text: 'all is well' }])
    const sent = chat
      .sent()
      .map(({ text }) => text)
      .join('\n')
    expect(sent).toMatch(/^Here it is\./)
    expect(sent.match(/not attached/g)).toHaveLength(3)
    expect(sent).not.toContain('[FILE:')
  })
})

test('after SIGKILL at the first call of a preview, one message is in the private chat', async () => {
  reply = { text: WORDS, chunkMs: 30 }
  const chat = await startChat('telegram')
  const { dataDir } = chatFolder({ chats: [chat], keys: PARTIAL, toml: toml() })
  let daemon = await startSourceDaemon(dataDir)
  const previews = (text: string) =>
    eventually(
      async () => chat.previews?.[0],
      (shown) => shown?.startsWith(text) === true,
    )
  try {
    chat.say({ text: 'tell me' })
    await previews('')
    await daemon.kill()
    expect(chat.sent()).toEqual([])
    daemon = await startSourceDaemon(dataDir)
    await previews('word0')
    await eventually(
      async () => chat.sent().length,
      (sent) => sent > 0,
    )
    expect(chat.sent()).toMatchObject([{ text: WORDS, isEdited: false }])
    expect(chat.previews).toEqual([])
  } finally {
    await daemon.kill()
    await chat.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('after SIGKILL the daemon completes the same draft', async () => {
  reply = { text: WORDS, chunkMs: 300 }
  const chat = await startChat('telegram')
  const { dataDir } = chatFolder({ chats: [chat], keys: PARTIAL, toml: toml() })
  let daemon = await startSourceDaemon(dataDir)
  const saying = (text: string) =>
    eventually(
      async () => chat.sent()[0]?.text ?? '',
      (shown) => shown.startsWith(text),
    )
  try {
    ask(chat)
    await saying('word0')
    await daemon.kill()
    reply = { text: 'the end' }
    daemon = await startSourceDaemon(dataDir)
    await saying('the end')
    expect(chat.sent()).toHaveLength(1)
  } finally {
    await daemon.kill()
    await chat.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
