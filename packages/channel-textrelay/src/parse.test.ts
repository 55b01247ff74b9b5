import { AppError, type Inbound } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { parse as parseRaw } from './parse.ts'

const parseBytes = (body: Uint8Array): Inbound[] => parseRaw({ body }, { fromPhone: '+15550001111' })
const parse = (json: unknown): Inbound[] => parseBytes(new TextEncoder().encode(JSON.stringify(json)))

const event = (data: object = {}, changes: object = {}) => ({
  event_type: 'message.received',
  event_id: 'event-1',
  created_at: '2026-01-01T00:00:00Z',
  data: {
    id: 'message-1',
    direction: 'inbound',
    sender_handle: { handle: '+15550003333', is_me: false },
    chat: { id: 'chat-1' },
    parts: [{ type: 'text', value: 'hi' }],
    ...data,
  },
  ...changes,
})

// `MessageEventV2` and `SchemasIMessageAppPartResponse` of `@linqapp/sdk` 0.28.2.
test('names the message that is answered, and describes messages of apps and later kinds', () => {
  expect(parse(event({ reply_to: { message_id: 'message-0', part_index: 0 } }))).toMatchObject([{ text: 'hi', inReplyTo: 'message-0' }])
  const app = {
    type: 'imessage_app',
    app: { bundle_id: 'com.example.poll', name: 'Polls', team_id: 'T1' },
    url: 'https://example.com/poll',
    fallback_text: 'Lunch?',
    layout: {},
  }
  expect(parse(event({ parts: [app, { type: 'hologram' }] }))).toMatchObject([
    {
      text: '',
      things: [
        { kind: 'link', text: 'Polls, Lunch?, https://example.com/poll' },
        { kind: 'unknown', text: 'hologram' },
      ],
    },
  ])
})

test('drops our own messages in every form of the payload', () => {
  for (const own of [
    { is_from_me: true },
    { direction: 'outbound' },
    { sender_handle: { handle: '+15550003333', is_me: true } },
    { sender_handle: { handle: '+1 555 000 1111' } },
  ]) {
    expect(parse(event(own))).toEqual([])
  }
})

test('ignores events other than message.received', () => {
  for (const type of ['message.sent', 'reaction.added', 'MESSAGE.RECEIVED', '', null, undefined, 7]) {
    expect(parse(event({}, { event_type: type }))).toEqual([])
  }
})

test('drops a message without text or media', () => {
  for (const parts of [undefined, null, 'hi', [], [null], [{ type: 'text', value: ' \n' }]]) {
    expect(parse(event({ parts }))).toEqual([])
  }
})

test('uses the id of the message, which retries repeat and edits name, else that of the event', () => {
  expect(parse(event())[0]?.id).toBe('message-1')
  expect(parse(event({ id: undefined }))[0]?.id).toBe('event-1')
})

test.each([{ part: { index: 0 } }, { part: { index: 0, text: 'x' }, id: '' }, { part: { index: 0, text: 'x' }, direction: 'outbound' }])(
  'ignores the edit %j',
  (data) => {
    expect(parse(event(data, { event_type: 'message.edited' }))).toEqual([])
  },
)

test('rejects a message without an id or a sender', () => {
  for (const broken of [
    event({ id: '' }, { event_id: null }),
    event({ sender_handle: null }),
    event({ sender_handle: { handle: '()' } }),
  ]) {
    expect(() => parse(broken)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  }
})

test('rejects a body that is not a JSON object', () => {
  for (const body of ['', '[]', 'null', '"x"', '{', '\ufeff{']) {
    expect(() => parseBytes(new TextEncoder().encode(body))).toThrow(new AppError('invalid_request', 'Invalid JSON payload'))
  }
  expect(() => parseBytes(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(new AppError('invalid_request', 'Invalid JSON payload'))
})

test('joins texts and links as lines, unchanged', () => {
  const parts = [
    { type: 'text', value: ' two\nlines ' },
    { type: 'media', url: 'https://cdn.example/x' },
    { type: 'link', value: 'https://example.com/' },
  ]
  expect(parse(event({ parts }))[0]).toMatchObject({
    text: ' two\nlines \nhttps://example.com/',
    attachments: [{ kind: 'file', name: 'file', source: { url: 'https://cdn.example/x' } }],
  })
})

test('reads at most 100 parts and cuts long file names', () => {
  const parts = Array.from({ length: 150 }, (_, index) => ({
    type: 'media',
    url: `https://cdn.example/${index}`,
    filename: 'n'.repeat(999),
  }))
  const [message] = parse(event({ parts }))
  expect(message?.attachments).toHaveLength(100)
  expect(message?.attachments?.[0]?.name).toHaveLength(255)
})

test('replies to the group, or to the sender when the event has no chat', () => {
  expect(parse(event({ chat: { id: 'chat-1', is_group: true } }))[0]?.to).toEqual({ to: 'chat-1' })
  expect(parse(event({ is_group: true }))[0]?.to).toEqual({ to: 'chat-1' })
  expect(parse(event({ chat: {} }))[0]?.to).toEqual({ to: '+15550003333' })
})

test('omits a time that cannot be parsed', () => {
  expect(parse(event({ sent_at: 'yesterday' }, { created_at: undefined }))[0]).not.toHaveProperty('sentAtMs')
})
