import { createHash } from 'node:crypto'
import type { InboxEntry } from '@sluice/sdk'
import { expect, test } from 'vitest'
import type { Item } from './item.ts'
import { judgeArrivals } from './judge-arrivals.ts'
import { picturesOf } from './platform.ts'

const MARK = 'chaos-000001'
const EDIT = 'chaos-000002'

const item = (more: Partial<Item> = {}): Item => ({
  mark: MARK,
  channel: 'telegram',
  person: '2001',
  kind: 'text',
  delivered: [{ id: '1' }],
  pictures: [],
  ...more,
})
const album = (more: Partial<Item> = {}): Item =>
  item({ kind: 'album', delivered: [{ id: '1' }, { id: '2' }], pictures: picturesOf(MARK, 2), ...more })
const [first, second] = picturesOf(MARK, 2).map((bytes) => `[Image: x] attachments/${createHash('sha256').update(bytes).digest('hex')}.png`)

/** Returns the figures that are not zero, by the name of the row, when the turns have these texts. */
function judged(items: readonly Item[], said: readonly string[], { state = 'done', acknowledged = true } = {}) {
  const rows = items.flatMap(({ channel, delivered }) => delivered.map(({ id }) => ({ channel, messageId: id, number: Number(id), state })))
  const words = { problems: [], inbox: rows as unknown as InboxEntry[], outbox: [], sessions: [{ id: 's', said }] }
  const tallies = judgeArrivals(items, new Set(acknowledged ? [] : items), words)
  return Object.fromEntries(
    tallies.flatMap(({ row: { what, accepted: _, ...figures } }) => {
      const found = Object.entries(figures).filter(([, count]) => count > 0)
      return found.length > 0 ? [[what, Object.fromEntries(found)]] : []
    }),
  )
}

test.each([
  ['a message in one turn', [item()], [`do ${MARK}`]],
  ['an album in one turn', [album()], [`do ${MARK}\n${first}\n${second}`]],
  ['an album that joined another turn', [album()], [`do chaos-000009\ndo ${MARK}\n${first}\n${second}`]],
  ['an edit that replaced the words', [item({ edit: EDIT })], [`do ${EDIT}`]],
  ['an edit that was told', [item({ edit: EDIT })], [`do ${MARK}`, `(The sender edited an earlier message. It now says: "do ${EDIT}")`]],
] as const)('finds nothing wrong with %s', (_, items, said) => {
  expect(judged(items, said)).toEqual({})
})

test.each([
  ['a lost message', [item()], [], { messages: { lost: 1 } }],
  ['a doubled message', [item()], [`do ${MARK}`, `do ${MARK}`], { messages: { doubled: 1 } }],
  ['an album of two turns', [album()], [`do ${MARK}\n${first}`, `${second}`], { albums: { lost: 1 } }],
  ['an album without a picture', [album()], [`do ${MARK}\n${first}\n(1 more attachments were left out)`], { albums: { lost: 1 } }],
  ['a picture in two turns', [album()], [`do ${MARK}\n${first}\n${second}`, `${second}`], { albums: { doubled: 1 } }],
  ['a lost edit', [item({ edit: EDIT })], [`do ${MARK}`], { edits: { lost: 1 } }],
  [
    'an edit that was told twice',
    [item({ edit: EDIT })],
    [`do ${MARK}`, ...Array(2).fill(`(The sender edited an earlier message. It now says: "do ${EDIT}")`)],
    { edits: { toldTwice: 1 } },
  ],
  ['a quote without its words', [item({ kind: 'quote', quotes: EDIT })], [`do ${MARK}`], { quotes: { lost: 1 } }],
] as const)('finds %s', (_, items, said, figures) => {
  expect(judged(items, said)).toEqual(figures)
})

test('calls a message that still waits unfinished, and not lost', () => {
  expect(judged([item()], [], { state: 'pending' })).toEqual({ messages: { unfinished: 1 } })
  expect(judged([item()], [], { acknowledged: false })).toEqual({ messages: { unfinished: 1 } })
})

test('excuses an album of two turns only if a kill came between its deliveries', () => {
  expect(judged([album({ isTornApart: true })], [`do ${MARK}\n${first}`, `${second}`])).toEqual({ albums: { uncertain: 1 } })
})

test('excuses an album of two turns only if its pictures came further apart than the daemon waits', () => {
  expect(judged([album({ gapMs: 1600 })], [`do ${MARK}\n${first}`, `${second}`])).toEqual({ albums: { uncertain: 1 } })
  expect(judged([album({ gapMs: 600 })], [`do ${MARK}\n${first}`, `${second}`])).toEqual({ albums: { lost: 1 } })
})
