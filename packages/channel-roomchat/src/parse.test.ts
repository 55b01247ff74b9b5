/** Payloads that the fixtures do not cover: unusual values, and messages that are ignored. */
import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { normaliseSender, parse as parseRaw } from './parse.ts'

const note = { type: 'Note', id: '1', name: 'message', content: '{"message":"hi","parameters":[]}' }
const event = { type: 'Create', actor: { type: 'Person', id: 'users/ada', name: 'Ada' }, object: note, target: { id: 'ops4room' } }
const message = {
  id: 1,
  actorType: 'users',
  actorId: 'ada',
  actorDisplayName: 'Ada',
  messageType: 'comment',
  systemMessage: '',
  message: 'hi',
}
const flat = { type: 'message', object: { token: 'ops4room' }, message }

const parse = (payload: unknown, botName = '') =>
  parseRaw({ body: new TextEncoder().encode(JSON.stringify(payload)) }, { account: 'cloud.example', botName })
const textOf = (content: unknown) => parse({ ...event, object: { ...note, content } })[0]?.text

// The objects of `RichObjectStrings/Definitions.php` of Nextcloud, in the form of "Bots and webhooks" of its chat app.
test.each([
  [
    { type: 'geo-location', id: 'geo:52.5,13.4', name: 'Office', latitude: '52.5', longitude: '13.4' },
    { kind: 'location', text: '52.5, 13.4: Office' },
  ],
  [
    { type: 'talk-poll', id: '7', name: 'Lunch?' },
    { kind: 'poll', text: 'Lunch?' },
  ],
  [
    { type: 'deck-card', id: '1', name: 'Write', boardname: 'Team', stackname: 'To do', link: 'https://cloud.example/1' },
    { kind: 'link', text: 'Write, Team, To do, https://cloud.example/1' },
  ],
  [
    { type: 'hologram', id: '1', name: 'H' },
    { kind: 'unknown', text: 'hologram, H' },
  ],
])('describes a shared object: %j', (object, thing) => {
  const content = JSON.stringify({ message: '{object}', parameters: { actor: { type: 'user', id: 'ada', name: 'Ada' }, object } })
  for (const name of ['object_shared', 'message']) {
    expect(parse({ ...event, type: 'Activity', object: { ...note, name, content } })).toMatchObject([{ text: '', things: [thing] }])
  }
  const shared = { ...message, message: '{object}', messageParameters: { object } }
  expect(parse({ ...flat, message: shared })).toMatchObject([{ text: '', things: [thing] }])
})

describe('payloads', () => {
  test('rejects a body that is not JSON and ignores JSON of another shape', () => {
    for (const bytes of [new TextEncoder().encode('{'), Uint8Array.of(0xff, 0x7b, 0x7d), new Uint8Array()]) {
      expect(() => parseRaw({ body: bytes }, { account: 'a', botName: '' })).toThrow(
        new AppError('invalid_request', 'Invalid JSON payload'),
      )
    }
    for (const payload of [null, 1, 'x', [], {}, [event], { type: 'message' }, { type: 'Create' }]) expect(parse(payload)).toEqual([])
  })

  test('parses both formats of one message equally', () => {
    expect(parse(flat)).toEqual(parse(event))
    expect(parse({ ...flat, object: {}, message: { ...message, token: 'ops4room' } })).toEqual(parse(event))
  })

  test('accepts an id as text or as a whole number', () => {
    expect(parse({ ...event, object: { ...note, id: 1 } })).toEqual(parse(event))
    for (const id of [1.5, 2 ** 60, '', ' ', null, {}]) expect(parse({ ...event, object: { ...note, id } })).toEqual([])
  })

  test('makes ids unique across rooms', () => {
    const ids = ['ops4room', 'dev4room'].map((id) => parse({ ...event, target: { id } })[0]?.id)
    expect(ids).toEqual(['ops4room/1', 'dev4room/1'])
    for (const id of ['a/b', '..', 'a b', '', 'x'.repeat(101), 7]) expect(parse({ ...event, target: { id } })).toEqual([])
  })

  test('reads a time in seconds or milliseconds and omits other values', () => {
    const sentAt = (timestamp: unknown) => parse({ ...flat, message: { ...message, timestamp } })[0]?.sentAtMs
    expect([sentAt(1767225600), sentAt('1767225600'), sentAt(1767225600123)]).toEqual([1767225600000, 1767225600000, 1767225600123])
    for (const timestamp of [0, -1, 'soon', 1e300, null, {}]) expect(sentAt(timestamp)).toBeUndefined()
  })
})

test('the name of the bot, and an answer to it, address the bot', () => {
  const said = (text: string, more: object = {}) =>
    parse({ ...flat, message: { ...message, message: text, ...more } }, 'Sluice Bot')[0]?.addressed
  expect([said('hi'), said('sluice bot, hi'), said('hi @Sluice Bot'), said('@Sluice Bot hi')]).toEqual([
    'overheard',
    'mention',
    'mention',
    'mention',
  ])
  const parent = { id: 7, actorType: 'bots', actorId: 'bot-1', actorDisplayName: 'Sluice Bot', message: 'Shall I?' }
  expect([said('yes', { parent }), said('yes', { parent: { ...parent, actorDisplayName: 'Another' } })]).toEqual(['reply', 'overheard'])
})

describe('text', () => {
  test('is the content itself when it is not a JSON object with a message', () => {
    expect([textOf('plain'), textOf('42'), textOf('{"a":1}'), textOf('[]')]).toEqual(['plain', '42', '{"a":1}', '[]'])
  })

  test('replaces each placeholder once by the name of its parameter', () => {
    const content = (parameters: unknown) => JSON.stringify({ message: 'hi {a} {b} {toString} {__proto__}', parameters })
    expect(textOf(content({ a: { name: '{b}' }, b: { name: 'Bob' } }))).toBe('hi {b} Bob {toString} {__proto__}')
    expect(textOf(content({ a: { name: '' }, b: 'Bob' }))).toBe('hi {a} {b} {toString} {__proto__}')
    for (const parameters of [[], null, 'x', undefined]) expect(textOf(content(parameters))).toBe('hi {a} {b} {toString} {__proto__}')
  })

  test('that is blank is ignored', () => {
    expect(parse({ ...event, object: { ...note, content: '{"message":" \\n"}' } })).toEqual([])
  })

  test('has a file without a URL as an attachment with its id', () => {
    const share = (file: object) => ({
      ...event,
      type: 'Activity',
      object: { ...note, content: JSON.stringify({ message: '{file}', parameters: { file: { type: 'file', ...file } } }) },
    })
    const [found] = parse(share({ id: 9, name: 'clip.mp4', mimetype: 'video/mp4' }))
    expect(found?.attachments).toEqual([{ kind: 'video', name: 'clip.mp4', mime: 'video/mp4', source: { id: '9' } }])
    expect(parse(share({ id: '9' }))[0]?.attachments).toEqual([{ kind: 'file', name: 'file', source: { id: '9' } }])
    expect(parse(share({ name: 'clip.mp4' }))).toEqual([])
  })
})

describe('ignored messages', () => {
  const from = (actor: object) => parse({ ...event, actor: { type: 'Person', name: 'Ada', ...actor } })

  test('of bots and applications, in both formats', () => {
    expect(from({ id: 'bots/bot-1' })).toEqual([])
    expect(from({ id: 'users/ada', type: 'Application' })).toEqual([])
    for (const actorType of ['bots', 'Application']) expect(parse({ ...flat, message: { ...message, actorType } })).toEqual([])
  })

  test('of the display name bot_name, in any case', () => {
    for (const name of ['Sluice', 'sluice ', 'SLUICE']) {
      expect(parse({ ...event, actor: { ...event.actor, name } }, ' Sluice ')).toEqual([])
      expect(parse({ ...event, actor: { ...event.actor, name } }, ' ')).toHaveLength(1)
    }
    expect(parse({ ...event, actor: { ...event.actor, name: '' } })).toHaveLength(1)
    expect(parse(event, 'Sluice')).toHaveLength(1)
  })

  test('without a sender', () => {
    for (const id of ['', 'users/', ' ', undefined]) expect(from({ id })).toEqual([])
    expect(parse({ ...flat, message: { ...message, actorId: '' } })).toEqual([])
  })
})

describe('normaliseSender', () => {
  test.each([
    ['users/ada', 'ada'],
    [' ada ', 'ada'],
    ['guests/6f1b', 'guests/6f1b'],
    ['emails/6f1b', 'emails/6f1b'],
    ['federated_users/carol@other.example', 'federated_users/carol@other.example'],
  ])('returns %j as %j', (actor, sender) => expect(normaliseSender(actor)).toBe(sender))

  test('is idempotent', () => {
    const parts = fc.array(fc.constantFrom('users/', 'guests/', ' ', 'ada', '/')).map((some) => some.join(''))
    fc.assert(fc.property(parts, (actor) => normaliseSender(normaliseSender(actor)) === normaliseSender(actor)))
  })
})

test.each([
  ['@Helper Bot /stop', '/stop'],
  ['helper bot: /stop', '/stop'],
  ['Helper Bot, hi', 'hi'],
  ['Helper Bots /stop', 'Helper Bots /stop'],
  ['@Helper Bot', '@Helper Bot'],
  ['ask @Helper Bot', 'ask @Helper Bot'],
])('%j reads %j when the bot is named Helper Bot', (said, read) => {
  const content = JSON.stringify({ message: said, parameters: [] })
  expect(parse({ ...event, object: { ...note, content } }, 'Helper Bot')[0]?.text).toBe(read)
})
