import type { InboxEntry, OutboxRow } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { judgeRooms } from './judge-rooms.ts'
import type { RoomPlace } from './places.ts'
import type { RoomWord, RoomWordKind } from './rooms-play.ts'

const [ONE, TWO] = ['chaos-000001', 'chaos-000002']

interface Run {
  readonly words: readonly (readonly [kind: RoomWordKind, mark: string])[]
  readonly said?: readonly string[]
  readonly state?: string
  /** The marks of the queued replies, and of those that the platform has. */
  readonly queued?: readonly string[]
  readonly shown?: readonly string[]
  readonly leaks?: readonly string[]
}

/** Returns the figures that are not zero, by the name of the row. */
function judged({ words, said = [], state = 'done', queued = [], shown = queued, leaks = [] }: Run) {
  const room: RoomPlace = {
    channel: 'telegram',
    chat: '-1',
    people: ['1'],
    overhears: true,
    stopper: '2',
    isReady: () => true,
    say: () => '',
    delivered: () => shown.map((mark) => `to ${mark}`),
  }
  const spoken: RoomWord[] = words.map(([kind, mark]) => ({ kind, mark, room, person: '1', id: mark }))
  const inbox = words.map(([, mark]) => ({ channel: 'telegram', messageId: mark, number: Number(mark.slice(-6)), state }))
  const outbox = queued.map((mark, at) => ({ channel: 'telegram', to: { to: '-1' }, text: `to ${mark}`, number: at, state: 'sent' }))
  const view = {
    problems: [],
    inbox: inbox as unknown as InboxEntry[],
    outbox: outbox as unknown as OutboxRow[],
    sessions: [{ id: 's', said }],
  }
  const tallies = judgeRooms({ words: spoken, rooms: [room], requests: 1, leaks }, view)
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

test.each([
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
