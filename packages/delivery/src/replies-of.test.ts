import type { Channel, ReplyExtras, StartedMessage } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { repliesOf } from './replies-of.ts'

const CHANNEL: Channel = {
  name: 'x',
  allow: ['*'],
  limits: { text: 20, unit: 'utf16', attachments: { count: 2, bytesMax: 100 } },
  send: async () => ({ id: 'p' }),
}

const STARTED: StartedMessage = {
  number: 7,
  channel: 'x',
  account: 'bot',
  session: 's',
  message: { id: 'm', account: 'bot', sender: 'ada', to: { to: 'room', thread: 't', replyTo: 'm' }, text: 'hi' },
  receivedAtMs: 0,
  sinceMs: 0,
  turnId: 'turn-1',
  attempts: 1,
  checkpoint: [],
  draft: null,
}

const replies = (answer: string, draft?: string) => repliesOf(answer, { channel: CHANNEL, started: STARTED, nowMs: 5, draft })
/** Of each: its text, and what it has beside. */
const shown = (answer: string, draft?: string): (readonly [text: string, extras: ReplyExtras])[] =>
  replies(answer, draft).map(({ text, extras = {} }) => [text, extras] as const)

const FILE = { kind: 'file', path: 'a.txt' } as const
const DRAFT = { edits: 'p1', elseSend: true } as const

describe('the reply of a turn', () => {
  test('goes where the message came from, as whom it came to, and quotes it', () => {
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

  test('is several where it is too long; only the first quotes, and each has an id of its own', () => {
    const parts = replies('one two three four five six seven')
    expect(parts.map(({ text }) => text).join(' ')).toBe('one two three four five six seven')
    expect(parts.map(({ part, parts: of }) => [part, of])).toEqual(parts.map((_, index) => [index + 1, parts.length]))
    expect(parts.map(({ to }) => to.replyTo)).toEqual(['m', ...parts.slice(1).map(() => undefined)])
    expect(new Set(parts.map(({ clientId }) => clientId)).size).toBe(parts.length)
  })

  test('that says nothing is none', () => expect(replies(' \n ')).toEqual([]))

  test.each<[what: string, answer: string, expected: ReturnType<typeof shown>]>([
    ['goes out with the text', 'look [FILE:a.txt]', [['look', { files: [FILE] }]]],
    ['goes out with nothing else where nothing is said', '[FILE:a.txt]', [['', { files: [FILE] }]]],
    [
      'goes out with the last part',
      'one two three four five [FILE:a.txt]',
      [
        ['one two three four', {}],
        ['five', { files: [FILE] }],
      ],
    ],
  ])('a file %s', (_, answer, expected) => expect(shown(answer)).toEqual(expected))
})

describe('a reply that was shown while it was made', () => {
  test.each<[what: string, answer: string, expected: ReturnType<typeof shown>]>([
    ['takes the place of what was shown', 'hello', [['hello', DRAFT]]],
    [
      'goes on in further messages',
      'one two three four five',
      [
        ['one two three four', DRAFT],
        ['five', {}],
      ],
    ],
    ['leaves nothing half said where nothing came of it', '', [['(no answer)', DRAFT]]],
    [
      'has its files in a message of their own, since an edit carries none',
      'look [FILE:a.txt]',
      [
        ['look', DRAFT],
        ['', { files: [FILE] }],
      ],
    ],
    [
      'says so where there are only files',
      '[FILE:a.txt]',
      [
        ['(attached)', DRAFT],
        ['', { files: [FILE] }],
      ],
    ],
    [
      'has its files in the last of several messages',
      'one two three four five [FILE:a.txt]',
      [
        ['one two three four', DRAFT],
        ['five', { files: [FILE] }],
      ],
    ],
  ])('%s', (_, answer, expected) => expect(shown(answer, 'p1')).toEqual(expected))
})
