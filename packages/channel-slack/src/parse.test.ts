import type { Inbound } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseMessage, type Reader } from './parse-message.ts'
import { parsePresses } from './parse-press.ts'

const config: Reader['config'] = { channel_ids: [], mention_only: false, notification_channel_id: 'CPROMPTS', thread_replies: true }
const readerOf = (changes: Partial<Reader['config']> = {}): Reader => ({ account: 'A0123', bot: 'UBOT', config: { ...config, ...changes } })

const TS = '1767225600.000100'
const ROOT = '1767225000.000000'
const message = { type: 'message', channel: 'C1', user: 'UADA', ts: TS, text: 'hi' }
const parse = (changes: object = {}, settings: Partial<Reader['config']> = {}): Inbound | undefined =>
  parseMessage({ ...message, ...changes }, readerOf(settings))

describe('a message', () => {
  test('is known by its channel and time', () => {
    expect(parse()).toEqual({
      id: `C1:${TS}`,
      account: 'A0123',
      sender: 'UADA',
      to: { to: 'C1', thread: TS },
      text: 'hi',
      sentAtMs: 1_767_225_600_000,
    })
  })

  test.each([
    ['our own', { user: 'UBOT' }],
    ['a bot’s', { bot_id: 'B1' }],
    ['an older bot’s', { subtype: 'bot_message', user: undefined }],
    ['an edit', { subtype: 'message_changed' }],
    ['a deletion', { subtype: 'message_deleted' }],
    ['a join', { subtype: 'channel_join' }],
    ['of another type', { type: 'reaction_added' }],
    ['without a time', { ts: undefined }],
    ['with a time that is none', { ts: '../x' }],
    ['without a sender', { user: undefined }],
    ['nothing but a mention', { text: '<@UBOT>' }],
  ])('that is %s is none', (_name, changes) => {
    expect(parse(changes)).toBeUndefined()
  })

  test.each([['file_share'], ['thread_broadcast']])('of subtype %s is one', (subtype) => {
    expect(parse({ subtype })?.text).toBe('hi')
  })
})

describe('where the answer goes', () => {
  test.each([
    ['a message', {}, true, TS],
    ['a message, without thread_replies', {}, false, undefined],
    ['one in a thread', { thread_ts: ROOT }, true, ROOT],
    ['one in a thread, without thread_replies', { thread_ts: ROOT }, false, ROOT],
    ['the first of a thread, read from a history', { thread_ts: TS }, true, TS],
    ['the first of a thread, without thread_replies', { thread_ts: TS }, false, undefined],
    ['a direct message', { channel: 'D1' }, true, undefined],
    ['one in a thread of direct messages', { channel: 'D1', thread_ts: ROOT }, true, ROOT],
  ])('%s', (_name, changes, thread_replies, thread) => {
    expect(parse(changes, { thread_replies })?.to.thread).toBe(thread)
  })
})

describe('what is heard', () => {
  test('is what is said in the conversations that are named', () => {
    const heard = (channel: string, channel_ids: string[]) => parse({ channel }, { channel_ids }) !== undefined
    expect([heard('C1', ['C1']), heard('C2', ['C1']), heard('C2', ['*']), heard('D1', ['C1'])]).toEqual([true, false, true, false])
  })

  test('is, with mention_only, what is said to the bot', () => {
    const heard = (changes: object) => parse(changes, { mention_only: true }) !== undefined
    expect(heard({})).toBe(false)
    expect(heard({ text: '<@UBOT> hi' })).toBe(true)
    expect(heard({ channel: 'D1' })).toBe(true)
    expect(heard({ thread_ts: ROOT, parent_user_id: 'UBOT' })).toBe(true)
    expect(heard({ thread_ts: ROOT, parent_user_id: 'UBOB' })).toBe(false)
  })

  test('is, where prompts go, what is said in their threads', () => {
    const heard = (changes: object) => parse({ channel: 'CPROMPTS', ...changes }, { channel_ids: ['C1'] }) !== undefined
    expect([heard({}), heard({ thread_ts: ROOT, parent_user_id: 'UBOB' })]).toEqual([false, false])
    expect(heard({ thread_ts: ROOT, parent_user_id: 'UBOT' })).toBe(true)
  })
})

test('files come with what is known of them, and those that are gone do not', () => {
  const files = [
    { id: 'F1', name: 'cat.png', mimetype: 'image/png', url_private_download: 'https://files.slack.com/1' },
    { id: 'F2', title: 'notes', url_private: 'https://files.slack.com/2' },
    { id: 'F3', file_access: 'check_file_info' },
    { id: 'F4', mode: 'tombstone' },
    null,
  ]
  expect(parse({ text: '', subtype: 'file_share', files })?.attachments).toEqual([
    { kind: 'image', name: 'cat.png', mime: 'image/png', source: { url: 'https://files.slack.com/1' } },
    { kind: 'file', name: 'notes', source: { url: 'https://files.slack.com/2' } },
    { kind: 'file', name: 'F3', source: { id: 'F3' } },
  ])
  expect(parse({ files: Array.from({ length: 100 }, (_, index) => ({ id: `F${index}` })) })?.attachments).toHaveLength(20)
})

describe('a press', () => {
  const action = { type: 'button', value: 'approve:1', action_ts: '1767225700.000200' }
  const payload = { type: 'block_actions', user: { id: 'UEVE' }, container: { channel_id: 'C1', message_ts: TS }, actions: [action] }

  test('is of whoever pressed', () => {
    expect(parsePresses(payload, readerOf())).toEqual([
      {
        id: 'act:1767225700.000200:UEVE:C1',
        account: 'A0123',
        sender: 'UEVE',
        to: { to: 'C1', thread: TS },
        text: '',
        pressed: { message: TS, value: 'approve:1' },
      },
    ])
  })

  test('of something else than a button, or in something else than a message, is none', () => {
    const none = [
      { type: 'view_submission' },
      { user: {} },
      { container: {} },
      { actions: [{ ...action, type: 'static_select' }] },
      { actions: [] },
    ]
    for (const changes of none) expect(parsePresses({ ...payload, ...changes }, readerOf())).toEqual([])
  })
})

test('any JSON is read without throwing, and what comes out is whole', () => {
  const keys = ['type', 'user', 'channel', 'ts', 'thread_ts', 'text', 'files', 'subtype', 'container', 'actions', 'id', 'value']
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('message', 'block_actions', TS, 'C1', 'UADA', 'file_share'))
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...keys), value), (json) => {
      const found = [parseMessage(json, readerOf()), ...parsePresses(json, readerOf())].filter((inbound) => inbound !== undefined)
      for (const { id, account, sender, to } of found) for (const part of [id, account, sender, to.to]) expect(part).not.toBe('')
    }),
    { numRuns: 500 },
  )
})
