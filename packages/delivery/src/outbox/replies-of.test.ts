import { type Channel, markedFiles, type ReplyExtras, type StartedMessage } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { repliesOf } from './replies-of.ts'
import { loadReplyParts } from './reply-parts.ts'

const partsOf = await loadReplyParts({ name: 'x', allow: [], limits: { text: 20, unit: 'utf16' }, send: async () => ({ id: '' }) })

const CHANNEL: Channel = {
  name: 'x',
  allow: ['*'],
  limits: { text: 20, unit: 'utf16', attachments: { count: 2, bytesMax: 100 } },
  send: async () => ({ id: 'p' }),
}

const SESSION = 's'

const STARTED: StartedMessage = {
  number: 7,
  channel: 'x',
  account: 'bot',
  session: SESSION,
  message: { id: 'm', account: 'bot', sender: 'ada', to: { to: 'room', thread: 't', replyTo: 'm' }, text: 'hi' },
  receivedAtMs: 0,
  sinceMs: 0,
  turnId: 'turn-1',
  attempts: 1,
  checkpoint: [],
  draft: null,
}

const attached = (answer: string) => markedFiles(answer).map((path) => ({ path }))
const replies = (answer: string, draft?: string) =>
  repliesOf(answer, attached(answer), { channel: CHANNEL, started: STARTED, nowMs: 5, partsOf, draft })
/** The text and the extras of each reply. */
const shown = (answer: string, draft?: string): (readonly [text: string, extras: ReplyExtras])[] =>
  replies(answer, draft).map(({ text, extras = {} }) => [text, extras] as const)

const FILE = { kind: 'file', path: 'a.txt' } as const
const DRAFT = { edits: 'p1', elseSend: true } as const

describe('the reply of a turn', () => {
  test('goes to the conversation of the message, from its account, and quotes it', () => {
    expect(replies('hello')).toEqual([
      {
        channel: 'x',
        account: 'bot',
        to: { to: 'room', thread: 't', replyTo: 'm' },
        text: 'hello',
        part: 1,
        parts: 1,
        clientId: expect.any(String),
        turnId: 'turn-1',
        createdAtMs: 5,
      },
    ])
  })

  test('has several parts when it is too long; only the first quotes', () => {
    const parts = replies('one two three four five six seven')
    expect(parts.map(({ text }) => text).join(' ')).toBe('one two three four five six seven')
    expect(parts.map(({ part, parts: of }) => [part, of])).toEqual(parts.map((_, index) => [index + 1, parts.length]))
    expect(parts.map(({ to }) => to.replyTo)).toEqual(['m', ...parts.slice(1).map(() => undefined)])
    expect(new Set(parts.map(({ clientId }) => clientId)).size).toBe(parts.length)
  })

  test('without text has no parts', () => expect(replies(' \n ')).toEqual([]))

  test.each<[what: string, answer: string, expected: ReturnType<typeof shown>]>([
    ['is sent with the text', 'look [FILE:a.txt]', [['look', { files: [FILE], session: SESSION }]]],
    ['is sent alone when there is no text', '[FILE:a.txt]', [['', { files: [FILE], session: SESSION }]]],
    [
      'is sent with the last part',
      'one two three four five [FILE:a.txt]',
      [
        ['one two three four', {}],
        ['five', { files: [FILE], session: SESSION }],
      ],
    ],
  ])('a file %s', (_, answer, expected) => expect(shown(answer)).toEqual(expected))
})

describe('a reply that had a draft', () => {
  test.each<[what: string, answer: string, expected: ReturnType<typeof shown>]>([
    ['replaces the draft', 'hello', [['hello', DRAFT]]],
    [
      'continues in further messages',
      'one two three four five',
      [
        ['one two three four', DRAFT],
        ['five', {}],
      ],
    ],
    ['replaces the draft also without text', '', [['(no answer)', DRAFT]]],
    [
      'has its files in another message, because an edit has none',
      'look [FILE:a.txt]',
      [
        ['look', DRAFT],
        ['', { files: [FILE], session: SESSION }],
      ],
    ],
    [
      'replaces the draft also when there are only files',
      '[FILE:a.txt]',
      [
        ['(attached)', DRAFT],
        ['', { files: [FILE], session: SESSION }],
      ],
    ],
    [
      'has its files in the last of several messages',
      'one two three four five [FILE:a.txt]',
      [
        ['one two three four', DRAFT],
        ['five', { files: [FILE], session: SESSION }],
      ],
    ],
  ])('%s', (_, answer, expected) => expect(shown(answer, 'p1')).toEqual(expected))
})
