import type { InboxEntry, OutboxRow } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { judgeRooms } from './judge-rooms.ts'
import type { RoomPlace } from './places.ts'
import type { RoomWord, RoomWordKind } from './room-word.ts'

const [ONE, TWO, THREE] = ['chaos-000001', 'chaos-000002', 'chaos-000003']

interface Run {
  readonly words: readonly (readonly [kind: RoomWordKind, mark: string])[]
  readonly said?: readonly string[]
  readonly state?: string
  /** What the rows of the inbox have besides, by mark. */
  readonly rows?: Readonly<Record<string, object>>
  /** When each word reached the model. */
  readonly asked?: Readonly<Record<string, number>>
  /** The writers other than 1, by mark. */
  readonly writers?: Readonly<Record<string, string>>
  /** The texts that the bot sent besides replies. */
  readonly texts?: readonly string[]
  /** The marks of the queued replies, and of those that the platform has. */
  readonly queued?: readonly string[]
  readonly shown?: readonly string[]
  readonly leaks?: readonly string[]
}

/** Returns the figures that are not zero, by the name of the row. */
function judged({
  words,
  said = [],
  state = 'done',
  rows = {},
  asked = {},
  writers = {},
  texts = [],
  queued = [],
  shown = queued,
  leaks = [],
}: Run) {
  const room: RoomPlace = {
    channel: 'telegram',
    chat: '-1',
    people: ['1'],
    overhears: true,
    stopper: '2',
    operator: '9',
    limited: '8',
    isReady: () => true,
    say: () => '',
    delivered: () => [...shown.map((mark) => `to ${mark}`), ...texts],
  }
  const spoken: RoomWord[] = words.map(([kind, mark]) => ({ kind, mark, room, person: writers[mark] ?? '1', id: mark }))
  const inbox = words.map(([, mark]) => ({
    channel: 'telegram',
    messageId: mark,
    number: Number(mark.slice(-6)),
    turnId: null,
    error: null,
    endedAtMs: 100,
    replies: said.some((text) => text.includes(mark)) ? [{}] : [],
    state,
    ...rows[mark],
  }))
  const outbox = [...queued.map((mark) => `to ${mark}`), ...texts].map((text, at) => ({
    channel: 'telegram',
    to: { to: '-1' },
    text,
    number: at,
    state: 'sent',
  }))
  const view = {
    problems: [],
    inbox: inbox as unknown as InboxEntry[],
    outbox: outbox as unknown as OutboxRow[],
    sessions: [{ id: 's', said }],
  }
  const tallies = judgeRooms({ words: spoken, rooms: [room], asked: new Map(Object.entries(asked)), requests: 1, leaks }, view)
  return Object.fromEntries(
    tallies.flatMap(({ row: { what, accepted: _, ...figures } }) => {
      const found = Object.entries(figures).filter(([, count]) => count > 0)
      return found.length > 0 ? [[what, Object.fromEntries(found)]] : []
    }),
  )
}

const both = [
  ['do', ONE],
  ['do', TWO],
] as const

test('finds nothing wrong with words that are once in a turn and answered once', () => {
  expect(judged({ words: both, said: [`do ${ONE}`, `do ${TWO}`], queued: [ONE, TWO] })).toEqual({})
})

const slowThenStop = [
  ['slow', ONE],
  ['stop', TWO],
] as const
const WAITED = 'Messages that waited and are not answered: 1.'
const stopped = { error: 'stopped by its sender' }

test('finds nothing wrong with a limited person, or an operator, whose message others pass', () => {
  const others = [...both, ['do', THREE]] as const
  const passed = { words: others, said: [`do ${TWO}`, `do ${ONE}`, `do ${THREE}`], queued: [TWO, ONE, THREE] }
  expect(judged({ ...passed, writers: { [ONE]: '8', [TWO]: '3' } })).toEqual({})
  expect(judged({ ...passed, writers: { [ONE]: '9', [TWO]: '3' } })).toEqual({})
  expect(judged({ ...passed, writers: { [TWO]: '3' } })).toEqual({ 'messages to the bot': { outOfOrder: 1 } })
})

test.each([
  ['the message waited', { words: slowThenStop, rows: { [ONE]: stopped }, texts: [WAITED] }],
  ['its turn ran', { words: slowThenStop, rows: { [ONE]: { turnId: 't' } }, texts: ['Stopped.'] }],
  ['both are told', { words: slowThenStop, rows: { [ONE]: stopped }, texts: [`Stopped. ${WAITED}`] }],
  ['it was answered before', { words: slowThenStop, said: [`slow ${ONE}`], texts: ['Nothing is running.'] }],
  ['an operator wrote the command', { words: slowThenStop, rows: { [ONE]: stopped }, writers: { [TWO]: '9' }, texts: [WAITED] }],
] as const)('finds nothing wrong with a message before /stop: %s', (_, run) => {
  expect(judged(run)).toEqual({})
})

test.each([
  [
    'a message that was stopped without a command',
    { words: [['slow', ONE]], rows: { [ONE]: stopped } },
    { 'stopped messages': { lost: 1 } },
  ],
  [
    'a message that was stopped by an earlier command',
    {
      words: [
        ['stop', ONE],
        ['slow', TWO],
      ],
      rows: { [TWO]: stopped },
      texts: [WAITED],
    },
    { 'stopped messages': { lost: 1 } },
  ],
  [
    'a message that was stopped by the command of another person',
    { words: slowThenStop, rows: { [ONE]: stopped }, writers: { [TWO]: '3' }, texts: [WAITED] },
    { 'stopped messages': { lost: 1 } },
  ],
  ['a message before /stop that is lost', { words: slowThenStop, texts: ['Stopped.'] }, { 'stopped messages': { lost: 1 } }],
  ['a /stop without an answer', { words: slowThenStop, rows: { [ONE]: stopped } }, { 'answers to /stop': { lost: 1 } }],
  [
    'a /stop with two answers',
    { words: slowThenStop, rows: { [ONE]: stopped }, texts: ['Stopped.', WAITED] },
    { 'answers to /stop': { toldTwice: 1 } },
  ],
  [
    'a message that was answered although a /stop had ended before',
    { words: slowThenStop, said: [`slow ${ONE}`], asked: { [ONE]: 101 }, texts: ['Nothing is running.'] },
    { 'stopped messages': { outOfOrder: 1 } },
  ],
  [
    'a message that joined one before a /stop',
    {
      words: [...slowThenStop, ['slow', THREE]],
      said: [`slow ${ONE}\nslow ${THREE}`],
      rows: { [THREE]: { joinedTo: 1 } },
      texts: ['Nothing is running.'],
    },
    { 'stopped messages': { outOfOrder: 1 } },
  ],
  [
    'a message to the bot whose turn was silent',
    { words: [['do', ONE]], said: [`do ${ONE}`], rows: { [ONE]: { replies: [] } } },
    { 'messages to the bot': { lost: 1 } },
  ],
  ['a lost remark', { words: [['remark', ONE]] }, { 'judged remarks': { lost: 1 } }],
  ['a lost message', { words: both, said: [`do ${ONE}`] }, { 'messages to the bot': { lost: 1 } }],
  ['a message that waits', { words: [['do', ONE]], state: 'pending' }, { 'messages to the bot': { unfinished: 1 } }],
  ['a doubled message', { words: [['do', ONE]], said: [`do ${ONE}`, `do ${ONE}`] }, { 'messages to the bot': { doubled: 1 } }],
  ['messages in another order', { words: both, said: [`do ${TWO}`, `do ${ONE}`] }, { 'messages to the bot': { outOfOrder: 2 } }],
  ['a lost line', { words: [['hear', ONE]] }, { 'overheard messages': { lost: 1 } }],
  [
    'a line that was read twice',
    { words: [['hear', ONE]], said: [`hear ${ONE}`, `hear ${ONE}`] },
    { 'overheard messages': { doubled: 1 } },
  ],
  ['a lost reply', { words: [['do', ONE]], said: [`do ${ONE}`], queued: [ONE], shown: [] }, { replies: { lost: 1 } }],
  [
    'a reply that was sent twice',
    { words: [['do', ONE]], said: [`do ${ONE}`], queued: [ONE], shown: [ONE, ONE] },
    { replies: { toldTwice: 1 } },
  ],
  ['a word of another room', { words: [], leaks: ['x'] }, { 'requests with words of another room': { doubled: 1 } }],
] as const)('finds %s', (_, run, figures) => {
  expect(judged(run)).toEqual(figures)
})
