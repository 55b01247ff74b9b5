import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startTelegramFake, TELEGRAM_FORUM, TELEGRAM_GROUP, TELEGRAM_TOKEN, type TelegramFake } from './fake.ts'

let fake: TelegramFake
beforeEach(async () => {
  fake = await startTelegramFake()
})
afterEach(() => fake.close())

interface Answer {
  readonly ok: boolean
  readonly error_code?: number
  readonly description?: string
  readonly result?: unknown
}
const call = async (method: string, params: object | FormData = {}, token = TELEGRAM_TOKEN): Promise<Answer> => {
  const isForm = params instanceof FormData
  const response = await fetch(`${fake.url}/bot${token}/${method}`, {
    method: 'POST',
    ...(isForm ? { body: params } : { body: JSON.stringify(params), headers: { 'content-type': 'application/json' } }),
  })
  return (await response.json()) as Answer
}
const refused = async (method: string, params: object): Promise<string> => (await call(method, params)).description ?? 'not refused'
const ids = ({ result }: Answer) => (result as { update_id: number }[]).map(({ update_id }) => update_id)
const said = ({ result }: Answer) => (result as { message: { text: string } }[]).map(({ message }) => message.text)

describe('updates', () => {
  test('repeat until a later offset confirms them', async () => {
    for (const text of ['one', 'two', 'three']) fake.say({ text })
    const first = await call('getUpdates')
    expect(said(await call('getUpdates'))).toEqual(['one', 'two', 'three'])
    const [, second = 0] = ids(first)
    expect(said(await call('getUpdates', { offset: second }))).toEqual(['two', 'three'])
    expect(said(await call('getUpdates'))).toEqual(['two', 'three'])
    expect(said(await call('getUpdates', { offset: second, limit: 1 }))).toEqual(['two'])
    expect(said(await call('getUpdates', { offset: -1 }))).toEqual(['three'])
    expect(fake.waiting).toHaveLength(1)
  })

  test('end a waiting poll; without updates the poll ends empty', async () => {
    const polling = call('getUpdates', { timeout: 30 })
    while (!fake.polled) await new Promise((resolve) => setTimeout(resolve, 1))
    fake.say({ text: 'hi' })
    expect(said(await polling)).toEqual(['hi'])
    const { offset } = { offset: (fake.waiting[0]?.update_id ?? 0) + 1 }
    expect(await call('getUpdates', { offset, timeout: 0 })).toEqual({ ok: true, result: [] })
  })

  test('go to the newest poller and end the older one with a conflict', async () => {
    const first = call('getUpdates', { timeout: 30 })
    while (!fake.polled) await new Promise((resolve) => setTimeout(resolve, 1))
    const second = call('getUpdates', { timeout: 30 })
    expect(await first).toMatchObject({ ok: false, error_code: 409 })
    fake.say({ text: 'hi' })
    expect(said(await second)).toEqual(['hi'])
  })

  test('of a type the bot did not ask for are dropped', async () => {
    await call('getUpdates', { allowed_updates: ['callback_query'] })
    const message = fake.say({ text: 'hi' })
    fake.press({ message, data: 'x' })
    expect((await call('getUpdates')).result).toMatchObject([{ callback_query: { data: 'x', message: { message_id: message.id } } }])
  })
})

test('a wrong token is 401, a malformed one 404', async () => {
  expect(await call('getMe', {}, '700100:other')).toMatchObject({ ok: false, error_code: 401, description: 'Unauthorized' })
  expect(await call('getMe', {}, 'x')).toMatchObject({ ok: false, error_code: 404 })
  expect(await call('noMethod')).toMatchObject({ ok: false, error_code: 404 })
  fake.changeToken('700100:other')
  expect(await call('getMe', {}, '700100:other')).toMatchObject({ ok: true, result: { id: 700_100, is_bot: true, username: 'sluice_bot' } })
})

test.each<[params: object, words: string]>([
  [{ text: 'x' }, 'Bad Request: chat_id is empty'],
  [{ chat_id: 5, text: 'x' }, 'Bad Request: chat not found'],
  [{ chat_id: TELEGRAM_GROUP, text: ' ' }, 'Bad Request: message text is empty'],
  [{ chat_id: TELEGRAM_GROUP, text: 'x'.repeat(4097) }, 'Bad Request: message is too long'],
  [{ chat_id: TELEGRAM_FORUM, text: 'x', message_thread_id: 9 }, 'Bad Request: message thread not found'],
  [{ chat_id: TELEGRAM_GROUP, text: 'x', reply_parameters: { message_id: 1 } }, 'Bad Request: message to be replied not found'],
  [
    { chat_id: TELEGRAM_GROUP, text: 'x', reply_markup: { inline_keyboard: [[{ text: 'x', callback_data: 'x'.repeat(65) }]] } },
    'Bad Request: BUTTON_DATA_INVALID',
  ],
])('sendMessage refuses %j', async (params, words) => {
  expect(await refused('sendMessage', params)).toBe(words)
  expect(fake.sent()).toEqual([])
})

test('edits text and buttons; refuses unchanged, unknown and foreign messages', async () => {
  const keyboard = { inline_keyboard: [[{ text: 'Yes', callback_data: 'y' }]] }
  const { result } = await call('sendMessage', { chat_id: TELEGRAM_GROUP, text: 'may I?', reply_markup: keyboard })
  const { message_id } = result as { message_id: number }
  const edit = { chat_id: TELEGRAM_GROUP, message_id, text: 'may I?' }
  expect(await refused('editMessageText', { ...edit, reply_markup: keyboard })).toContain('message is not modified')
  expect(await refused('editMessageText', edit)).toBe('not refused')
  expect(fake.sent()).toMatchObject([{ text: 'may I?', edits: 1 }])
  expect(fake.sent()[0]).not.toHaveProperty('buttons')
  expect(await refused('editMessageText', { ...edit, message_id: 1 })).toBe('Bad Request: message to edit not found')
  const theirs = fake.say({ chat: TELEGRAM_GROUP, text: 'x' })
  expect(await refused('editMessageText', { ...edit, message_id: theirs.id })).toBe("Bad Request: message can't be edited")
})

test('shows one live draft in a private chat until the next message; refuses groups, numbers of zero, and long texts', async () => {
  const draft = { chat_id: 1001, draft_id: 5 }
  expect(await call('sendMessageDraft', { ...draft, text: 'On' })).toEqual({ ok: true, result: true })
  expect(await call('sendMessageDraft', { ...draft, text: 'One' })).toEqual({ ok: true, result: true })
  expect(fake.drafts).toEqual([{ id: 5, chat: 1001, thread: 0, text: 'One' }])
  expect(fake.messages()).toEqual([])
  expect(await refused('sendMessageDraft', { ...draft, chat_id: TELEGRAM_GROUP, text: 'x' })).toBe('Bad Request: TEXTDRAFT_PEER_INVALID')
  expect(await refused('sendMessageDraft', { chat_id: 1001, text: 'x' })).toBe('Bad Request: RANDOM_ID_INVALID')
  expect(await refused('sendMessageDraft', { ...draft, text: 'x'.repeat(4097) })).toBe('Bad Request: message is too long')
  expect(await refused('sendMessageDraft', { ...draft, chat_id: 5 })).toBe('Bad Request: chat not found')
  await call('sendMessage', { chat_id: TELEGRAM_GROUP, text: 'x' })
  expect(fake.drafts).toHaveLength(1)
  await call('sendMessage', { chat_id: 1001, text: 'One two' })
  expect(fake.drafts).toEqual([])
})

test('a button press can be answered once', async () => {
  const query = fake.press({ message: fake.say({ text: 'x' }), data: 'y' })
  expect(await refused('answerCallbackQuery', { callback_query_id: query })).toBe('not refused')
  expect(await refused('answerCallbackQuery', { callback_query_id: query })).toContain('query is too old')
  expect(fake.answered).toEqual([query])
})

test('accepts uploaded files as forms and serves files by path', async () => {
  const form = new FormData()
  form.set('chat_id', String(TELEGRAM_GROUP))
  form.set('caption', 'look')
  form.set('photo', new File([new Uint8Array([1, 2])], 'a.png'))
  expect(await call('sendPhoto', form)).toMatchObject({ ok: true, result: { caption: 'look' } })
  expect(fake.sent()).toMatchObject([{ text: 'look', file: { method: 'photo', name: 'a.png', bytes: new Uint8Array([1, 2]) } }])
  const { result } = await call('getFile', { file_id: fake.file(new Uint8Array([3]), 'photos/1.jpg') })
  const { file_path } = result as { file_path: string }
  const response = await fetch(`${fake.url}/file/bot${TELEGRAM_TOKEN}/${file_path}`)
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(new Uint8Array([3]))
  expect((await fetch(`${fake.url}/file/bot700100:other/${file_path}`)).status).toBe(401)
})

test('a blocked bot gets 403, and an upgraded group reports its new id', async () => {
  fake.block(1001)
  expect(await call('sendMessage', { chat_id: 1001, text: 'x' })).toMatchObject({ error_code: 403 })
  fake.migrate(TELEGRAM_GROUP, { id: -100_900, type: 'supergroup' })
  expect(await call('sendMessage', { chat_id: TELEGRAM_GROUP, text: 'x' })).toMatchObject({ parameters: { migrate_to_chat_id: -100_900 } })
})
