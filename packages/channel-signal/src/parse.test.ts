import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ParseOptions, parse, partsOf } from './parse.ts'

const ACCOUNT = '+15550001111'
const ADA = '0d1e7c4a-9f5b-4c63-8a55-1f0f5d2f7a01'
const OPTIONS: ParseOptions = { account: ACCOUNT, ignore_attachments: false, ignore_stories: false }
const from = { source: '+15550003333', sourceNumber: '+15550003333', sourceUuid: ADA, sourceDevice: 1, timestamp: 5000 }
const said = (data: object, options: Partial<ParseOptions> = {}) =>
  parse({ envelope: { ...from, dataMessage: { timestamp: 5000, ...data } }, account: ACCOUNT }, { ...OPTIONS, ...options })

test('a direct message is answered to its sender and quoted', () => {
  expect(said({ message: 'hi' })).toEqual([
    {
      id: `${ADA}/5000`,
      account: ACCOUNT,
      sender: '+15550003333',
      to: { to: '+15550003333', replyTo: `${ADA}/5000` },
      text: 'hi',
      addressed: 'direct',
      sentAtMs: 5000,
    },
  ])
})

test('a sender who hides the number is known by the id of the account', () => {
  const envelope = { source: ADA, sourceUuid: ADA, timestamp: 5000, dataMessage: { timestamp: 5000, message: 'hi' } }
  expect(parse({ envelope }, OPTIONS)).toMatchObject([{ sender: ADA, to: { to: ADA } }])
})

describe('group_id', () => {
  const inGroup = { message: 'hi', groupInfo: { groupId: 'Z3JvdXA=', type: 'DELIVER' } }
  test.each([
    [undefined, 1, 1],
    ['dm', 0, 1],
    ['Z3JvdXA=', 1, 0],
    ['b3RoZXI=', 0, 0],
  ])('%s takes %i messages of a group and %i direct ones', (group_id, group, direct) => {
    expect([said(inGroup, { group_id }).length, said({ message: 'hi' }, { group_id }).length]).toEqual([group, direct])
  })

  test('a message in a group is answered in the group', () => {
    expect(said(inGroup)).toMatchObject([{ sender: '+15550003333', to: { to: 'group:Z3JvdXA=' } }])
  })
})

test('an edit and a deletion name the message that they change', () => {
  const editMessage = { targetSentTimestamp: 4000, dataMessage: { timestamp: 5000, message: 'better' } }
  expect(parse({ envelope: { ...from, editMessage } }, OPTIONS)).toMatchObject([
    { id: `${ADA}/5000`, text: 'better', changes: { message: `${ADA}/4000`, what: 'edited' } },
  ])
  expect(said({ remoteDelete: { timestamp: 4000 } })).toMatchObject([{ text: '', changes: { message: `${ADA}/4000`, what: 'deleted' } }])
})

test('files, mentions and the quoted message are passed on', () => {
  const attachments = [{ id: 'a.png', contentType: 'image/png', filename: 'cat.png', size: 3 }, { contentType: 'image/png' }]
  const mentions = [
    { start: 7, length: 1, name: 'Bob', uuid: 'b' },
    { start: 0, length: 1, number: '+15550004444' },
  ]
  const quote = { id: 4000, authorUuid: 'b', text: 'before' }
  expect(said({ message: '\uFFFC meets \uFFFC!', mentions, attachments, quote })).toMatchObject([
    {
      text: '@+15550004444 meets @Bob!',
      attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { id: 'a.png' } }],
      inReplyTo: 'b/4000',
    },
  ])
  expect(said({ attachments }, { ignore_attachments: true })).toEqual([])
})

test('stories are taken unless they are to be ignored', () => {
  const envelope = { ...from, storyMessage: { textAttachment: { text: 'a story' } } }
  expect(parse({ envelope }, OPTIONS)).toMatchObject([{ text: 'a story' }])
  expect(parse({ envelope }, { ...OPTIONS, ignore_stories: true })).toEqual([])
})

test.each([
  ['a receipt', { ...from, receiptMessage: { isRead: true } }],
  ['typing', { ...from, typingMessage: { action: 'STARTED' } }],
  ['a message of the bot', { ...from, sourceNumber: ACCOUNT, dataMessage: { timestamp: 5000, message: 'hi' } }],
  ['a message from another device of the bot', { ...from, syncMessage: { sentMessage: { timestamp: 5000, message: 'hi' } } }],
  ['a message without text', { ...from, dataMessage: { timestamp: 5000, message: '' } }],
  ['a message without a time', { ...from, timestamp: undefined, dataMessage: { message: 'hi' } }],
  ['a message without an author', { timestamp: 5000, dataMessage: { timestamp: 5000, message: 'hi' } }],
])('ignores %s', (_, envelope) => {
  expect(parse({ envelope }, OPTIONS)).toEqual([])
})

test('never throws, and every message has an id and a sender', () => {
  const check = (json: unknown): void => {
    for (const { id, sender } of parse(json, OPTIONS)) expect([partsOf(id), sender]).not.toContain('')
  }
  fc.assert(fc.property(fc.jsonValue(), check))
  fc.assert(fc.property(fc.jsonValue(), (json) => check({ envelope: { ...from, dataMessage: json, editMessage: json } })))
})

test('an id has an author and a time', () => {
  expect(partsOf(`${ADA}/5000`)).toEqual({ author: ADA, atMs: 5000 })
  expect([partsOf('5000'), partsOf('/5000'), partsOf(`${ADA}/x`)]).toEqual([undefined, undefined, undefined])
})

test('a mention of the bot in front is left out, and one elsewhere becomes a name', () => {
  const own = { start: 0, length: 1, name: 'Sluice', number: ACCOUNT, uuid: 'c' }
  expect(said({ message: '\uFFFC /stop', mentions: [own] })).toMatchObject([{ text: '/stop' }])
  expect(said({ message: '\uFFFC, ask \uFFFC', mentions: [own, { start: 7, length: 1, name: 'Bob' }] })).toMatchObject([
    { text: 'ask @Bob' },
  ])
  expect(said({ message: '\uFFFC hi', mentions: [{ ...own, number: '+15550004444' }] })).toMatchObject([{ text: '@Sluice hi' }])
})

test('a mention alone counts when it quotes a message, and only then', () => {
  const mention = { message: '\uFFFC', mentions: [{ start: 0, length: 1, number: ACCOUNT }], groupInfo: { groupId: 'Z3JvdXA=' } }
  const quote = { id: 4000, author: '+15550004444', authorNumber: '+15550004444', text: 'ticket 4711 burns' }
  expect(said({ ...mention, quote })).toMatchObject([{ text: '', addressed: 'mention', quoted: { text: 'ticket 4711 burns' } }])
  expect(said(mention)).toEqual([])
})
