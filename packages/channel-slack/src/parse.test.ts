import type { Inbound } from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type SlackConfig, slackSection } from './config.ts'
import { type Bot, parseChange, parseCommand, parseMessage, parsePresses } from './parse.ts'

const config = v.parse(slackSection.schema, { bot_token: 'xoxb-1', app_token: 'xapp-1', notification_channel_id: 'CPROMPTS' })
const botWith = (changes: Partial<SlackConfig> = {}): Bot => ({ account: 'A0123', userId: 'UBOT', config: { ...config, ...changes } })

const TS = '1767225600.000100'
const ROOT = '1767225000.000000'
const message = { type: 'message', channel: 'C1', user: 'UADA', ts: TS, text: 'hi' }
const parse = (changes: object = {}, settings: Partial<SlackConfig> = {}): Inbound | undefined =>
  parseMessage({ ...message, ...changes }, botWith(settings))

describe('parseMessage', () => {
  test('builds the id from the channel and the timestamp', () => {
    expect(parse()).toEqual({
      id: `C1:${TS}`,
      account: 'A0123',
      sender: 'UADA',
      to: { to: 'C1', thread: TS },
      text: 'hi',
      addressed: 'overheard',
      sentAtMs: 1_767_225_600_000,
    })
  })

  test.each([
    ['a message of the bot itself', { user: 'UBOT' }],
    ['a message of another bot', { bot_id: 'B1' }],
    ['a message of a legacy bot', { subtype: 'bot_message', user: undefined }],
    ['an edit', { subtype: 'message_changed' }],
    ['a deletion', { subtype: 'message_deleted' }],
    ['a join', { subtype: 'channel_join' }],
    ['an event of another type', { type: 'reaction_added' }],
    ['a message without a timestamp', { ts: undefined }],
    ['a message with a malformed timestamp', { ts: '../x' }],
    ['a message without a sender', { user: undefined }],
    ['a message that only mentions the bot', { text: '<@UBOT>' }],
  ])('ignores %s', (_name, changes) => {
    expect(parse(changes)).toBeUndefined()
  })

  test.each([['file_share'], ['thread_broadcast']])('accepts subtype %s', (subtype) => {
    expect(parse({ subtype })?.text).toBe('hi')
  })
})

describe('the reply address', () => {
  test.each([
    ['a message', {}, true, TS],
    ['a message, without thread_replies', {}, false, undefined],
    ['a message in a thread', { thread_ts: ROOT }, true, ROOT],
    ['a message in a thread, without thread_replies', { thread_ts: ROOT }, false, ROOT],
    ['the first message of a thread, read from a history', { thread_ts: TS }, true, TS],
    ['the first message of a thread, without thread_replies', { thread_ts: TS }, false, undefined],
    ['a direct message', { channel: 'D1' }, true, undefined],
    ['a message in a thread of direct messages', { channel: 'D1', thread_ts: ROOT }, true, ROOT],
  ])('fits %s', (_name, changes, thread_replies, thread) => {
    expect(parse(changes, { thread_replies })?.to.thread).toBe(thread)
  })
})

describe('a command outside of threads', () => {
  test.each([
    ['after a mention', { text: '<@UBOT> /stop' }, 'mention'],
    ['without one', { text: ' /stop' }, 'overheard'],
    ['that opened a thread later', { text: '<@UBOT> /stop', thread_ts: TS }, 'mention'],
  ])('%s is about the channel, and opens no thread', (_name, changes, addressed) => {
    expect(parse(changes)).toMatchObject({ to: { to: 'C1' }, addressed, text: '/stop' })
    expect(parse(changes)?.to).toEqual({ to: 'C1' })
  })

  test.each([
    ['a command in a thread', { text: '<@UBOT> /stop', thread_ts: ROOT }, ROOT],
    ['other words', { text: '<@UBOT> /stop it now' }, TS],
    ['a command to another bot', { text: '<@UBOT> /stop@other_bot' }, TS],
    ['a path', { text: '<@UBOT> /usr/bin' }, TS],
  ])('keeps %s where it is', (_name, changes, thread) => {
    expect(parse(changes)?.to.thread).toBe(thread)
  })
})

describe('the accepted messages', () => {
  test('come from the configured conversations', () => {
    const accepts = (channel: string, channel_ids: string[]) => parse({ channel }, { channel_ids }) !== undefined
    expect([accepts('C1', ['C1']), accepts('C2', ['C1']), accepts('C2', ['*']), accepts('D1', ['C1'])]).toEqual([true, false, true, false])
  })

  test('are only overheard with mention_only, unless they are addressed to the bot', () => {
    const isOverheard = (changes: object) => parse(changes, { mention_only: true })?.overheardOnly ?? false
    expect(isOverheard({})).toBe(true)
    expect(isOverheard({ text: '<@UBOT> hi' })).toBe(false)
    expect(isOverheard({ channel: 'D1' })).toBe(false)
    expect(isOverheard({ thread_ts: ROOT, parent_user_id: 'UBOT' })).toBe(false)
    expect(isOverheard({ thread_ts: ROOT, parent_user_id: 'UBOB' })).toBe(true)
  })

  test('include replies in threads of prompts in the notification channel', () => {
    const accepts = (changes: object) => parse({ channel: 'CPROMPTS', ...changes }, { channel_ids: ['C1'] }) !== undefined
    expect([accepts({}), accepts({ thread_ts: ROOT, parent_user_id: 'UBOB' })]).toEqual([false, false])
    expect(accepts({ thread_ts: ROOT, parent_user_id: 'UBOT' })).toBe(true)
  })
})

describe('a slash command', () => {
  const use = (words: string, changes: object = {}, settings: Partial<SlackConfig> = {}) =>
    parseCommand({ command: '/sluice', text: words, user_id: 'UADA', channel_id: 'C1', trigger_id: '1.1', ...changes }, botWith(settings))

  test('in a direct chat is addressed directly', () => {
    expect(use('stop', { channel_id: 'D1' })).toMatchObject({ addressed: 'direct', text: '/stop' })
    expect(use('stop', { channel_id: 'G1' })).toMatchObject({ addressed: 'command' })
  })

  test('comes from the configured conversations', () => {
    const accepts = (channel_id: string, channel_ids: string[]) => use('stop', { channel_id }, { channel_ids }) !== undefined
    expect([accepts('C1', ['C1']), accepts('C2', ['C1']), accepts('C2', ['*']), accepts('D1', ['C1'])]).toEqual([true, false, true, false])
    expect(accepts('CPROMPTS', ['C1'])).toBe(false)
  })

  test.each([
    ['', '/help'],
    ['please read the secrets', '/help'],
    ['stop it now', '/help'],
    ['toString', '/help'],
    ['/Stop', '/Stop'],
    ['model  gpt-5', '/model  gpt-5'],
    ['compact the\ndates', '/compact the\ndates'],
  ])('of the words %j is %j', (words, text) => {
    expect(use(words)?.text).toBe(text)
  })

  test('that is named like a command of Sluice is that command', () => {
    expect(use('the dates', { command: '/compact' })?.text).toBe('/compact the dates')
    expect(use('it now', { command: '/stop' })?.text).toBe('/help')
  })
})

test('parseMessage returns available files with their names, types and sources', () => {
  const files = [
    { id: 'F1', name: 'cat.png', mimetype: 'image/png', url_private_download: 'https://files.slack.com/1' },
    { id: 'F2', title: 'notes', url_private: 'https://files.slack.com/2' },
    { id: 'F3', file_access: 'check_file_info' },
    { id: 'F4', mode: 'tombstone' },
    null,
  ]
  expect(parse({ text: '', subtype: 'file_share', files })?.attachments).toEqual([
    { kind: 'image', name: 'cat.png', mime: 'image/png', source: { url: 'https://files.slack.com/1' }, lastingId: 'F1' },
    { kind: 'file', name: 'notes', source: { url: 'https://files.slack.com/2' }, lastingId: 'F2' },
    { kind: 'file', name: 'F3', source: { id: 'F3' }, lastingId: 'F3' },
  ])
  expect(parse({ files: Array.from({ length: 100 }, (_, index) => ({ id: `F${index}` })) })?.attachments).toHaveLength(20)
})

describe('parsePresses', () => {
  const action = { type: 'button', value: 'approve:1', action_ts: '1767225700.000200' }
  const payload = { type: 'block_actions', user: { id: 'UEVE' }, container: { channel_id: 'C1', message_ts: TS }, actions: [action] }

  test('reports the person who pressed as the sender', () => {
    expect(parsePresses(payload, botWith())).toEqual([
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

  test('ignores interactions other than buttons under messages', () => {
    const others = [
      { type: 'view_submission' },
      { user: {} },
      { container: {} },
      { actions: [{ ...action, type: 'static_select' }] },
      { actions: [] },
    ]
    for (const changes of others) expect(parsePresses({ ...payload, ...changes }, botWith())).toEqual([])
  })
})

test('the parsers accept any JSON and return complete messages', () => {
  const keys = ['type', 'user', 'channel', 'ts', 'thread_ts', 'text', 'files', 'subtype', 'container', 'actions', 'id', 'value']
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('message', 'block_actions', TS, 'C1', 'UADA', 'file_share'))
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...keys), value), (json) => {
      const found = [parseMessage(json, botWith()), ...parsePresses(json, botWith())].filter((inbound) => inbound !== undefined)
      for (const { id, account, sender, to } of found) for (const part of [id, account, sender, to.to]) expect(part).not.toBe('')
    }),
    { numRuns: 500 },
  )
})

/** The members of both events follow https://docs.slack.dev/reference/events/message/message_changed and message_deleted. */
describe('parseChange', () => {
  const edited = { ...message, text: 'new', edited: { user: 'UADA', ts: '1767225700.000000' } }
  const changed = {
    type: 'message',
    subtype: 'message_changed',
    channel: 'C1',
    ts: '1767225700.000100',
    message: edited,
    previous_message: message,
  }
  const deleted = {
    type: 'message',
    subtype: 'message_deleted',
    channel: 'C1',
    ts: '1767225700.000100',
    deleted_ts: TS,
    previous_message: message,
  }
  const change = (event: object) => parseChange({ ...event }, botWith({ mention_only: true }))

  test('an edit has the new text, the id of its message and an id of its own, with or without a mention', () => {
    expect(change(changed)).toMatchObject({
      id: `edit:C1:${TS}:1767225700.000000`,
      sender: 'UADA',
      text: 'new',
      changes: { message: `C1:${TS}`, what: 'edited' },
    })
  })

  test('an edit that takes away a file and keeps the text has the files that are left', () => {
    const file = (id: string) => ({ id, name: `${id}.png`, mimetype: 'image/png', url_private: `https://files.slack.com/${id}` })
    const before = { ...message, files: [file('F1'), file('F2')] }
    const left = change({ ...changed, message: { ...edited, text: 'hi', files: [file('F1')] }, previous_message: before })
    expect(left).toMatchObject({ text: 'hi', attachments: [{ name: 'F1.png' }], changes: { what: 'edited' } })
    const deletedFile = { id: 'F2', mode: 'tombstone' }
    expect(
      change({ ...changed, message: { ...edited, text: 'hi', files: [file('F1'), deletedFile] }, previous_message: before }),
    ).toBeDefined()
  })

  test('a deletion names its message and the writer', () => {
    expect(change(deleted)).toMatchObject({
      id: `delete:C1:${TS}`,
      sender: 'UADA',
      text: '',
      changes: { message: `C1:${TS}`, what: 'deleted' },
    })
    expect(change({ ...deleted, previous_message: undefined })).toMatchObject({ sender: '' })
  })

  test.each([
    ['the preview of a link', { ...changed, message: { ...message, attachments: [{}] } }],
    ['an edit that keeps the text', { ...changed, message: { ...edited, text: 'hi' } }],
    ['an edit of the bot', { ...changed, message: { ...edited, user: 'UBOT' } }],
    ['an edit of another bot', { ...changed, message: { ...edited, bot_id: 'B1' } }],
    ['a deletion of a message of the bot', { ...deleted, previous_message: { ...message, user: 'UBOT' } }],
    ['a deletion without a timestamp', { ...deleted, deleted_ts: undefined }],
    ['a message', message],
  ])('ignores %s', (_name, event) => {
    expect(change(event)).toBeUndefined()
  })
})

test('a mention alone counts in a thread, and not at its beginning', () => {
  expect(parse({ text: '<@UBOT>', thread_ts: ROOT })).toMatchObject({ text: '@UBOT', addressed: 'mention', to: { thread: ROOT } })
  expect(parse({ text: '<@UBOT>', thread_ts: TS })).toBeUndefined()
})
