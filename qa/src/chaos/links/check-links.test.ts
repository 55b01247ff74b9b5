import { expect, test } from 'vitest'
import type { History, Message, Seen, StoreView } from '../history.ts'
import type { Written } from '../ordered-traffic.ts'
import { checkLinks, type SeenGap } from './check-links.ts'

const MARKS = ['a', 'b']
const message = (mark: string): Message => ({ mark, kind: 'irc', sender: 'ada', id: `id-${mark}`, parts: 1, usesTool: false })
const written: readonly Written[] = MARKS.map((mark, index) => ({ message: message(mark), phase: 'during', atMs: 100 + index }))
const asked = (mark: string): Seen => ({ type: 'asked', mark, afterTool: false })
const reply = (mark: string) => ({ channel: 'irc', parts: [{ mark, part: 1 }] })
const inboxRow = (mark: string) => ({
  number: 1,
  channel: 'irc',
  account: 'bot',
  id: `id-${mark}`,
  state: 'done',
  attempts: 1,
  isAnswer: false,
})
const outboxRow = (mark: string, state: string) => ({
  number: 1,
  channel: 'irc',
  parts: [{ mark, part: 1 }],
  state,
  attempts: 1,
  isInterrupted: false,
  error: null,
  endedAtMs: 1,
})

interface Case {
  readonly arrived?: readonly string[]
  readonly turns?: readonly string[]
  readonly seen?: readonly Seen[]
  readonly replies?: readonly string[]
  readonly states?: Readonly<Record<string, string>>
  readonly gaps?: readonly SeenGap[]
  readonly phase?: string
}

function check({ arrived = MARKS, turns = arrived, seen = MARKS.map(asked), replies = arrived, states = {}, gaps = [], phase }: Case) {
  const history: History = {
    attemptsMax: 5,
    dropRepeats: [],
    messages: MARKS.map(message),
    seen,
    delivered: replies.map(reply),
  }
  const store: StoreView = {
    problems: [],
    inbox: arrived.map(inboxRow),
    outbox: arrived.map((mark) => outboxRow(mark, states[mark] ?? 'sent')),
    questions: [],
    notices: [],
    lines: [],
    sessions: [turns],
    summaries: [],
    unfinished: [],
    failed: [],
  }
  const { rows, violations } = checkLinks({
    history,
    store,
    written: phase === undefined ? written : written.map((one) => ({ ...one, phase })),
    gaps,
  })
  return { row: rows[0], details: violations.map(({ detail }) => detail) }
}

test('messages that arrived once and were answered once break no rule', () => {
  expect(check({})).toMatchObject({ row: { written: 2, arrived: 2, answeredOnce: 2, lost: 0, doubled: 0, outOfOrder: 0 }, details: [] })
})

test('a message that did not arrive is lost unless a gap names its time', () => {
  const missing = { arrived: ['a'], seen: [asked('a')] }
  expect(check(missing)).toMatchObject({
    row: { lost: 1 },
    details: ['b of irc, written during the cut, did not arrive, and no gap names its time'],
  })
  const gap = { channel: 'irc', sinceMs: 90, atMs: 200, why: 'no history' }
  expect(check({ ...missing, gaps: [gap] })).toMatchObject({ row: { lost: 0, inGap: 1, gaps: ['no history'] }, details: [] })
  for (const other of [{ channel: 'slack' }, { sinceMs: 102 }, { atMs: 100 }]) {
    expect(check({ ...missing, gaps: [{ ...gap, ...other }] }).row).toMatchObject({ lost: 1, inGap: 0 })
  }
})

test('a gap that names no time covers nothing and is reported', () => {
  const { row, details } = check({
    arrived: ['a'],
    seen: [asked('a')],
    gaps: [{ channel: 'irc', sinceMs: undefined, atMs: 200, why: 'w' }],
  })
  expect(row).toMatchObject({ lost: 1 })
  expect(details).toContain('a gap of irc names no time: w')
})

test.each<[string, Case]>([
  ['two rows', { arrived: ['a', 'b', 'b'], turns: MARKS, replies: MARKS }],
  ['two turns', { turns: ['a', 'b', 'b'] }],
  ['two requests to the model', { seen: [...MARKS.map(asked), asked('b')] }],
  ['two replies', { replies: ['a', 'b', 'b'] }],
])('a message with %s is doubled', (_what, changes) => {
  const { row, details } = check(changes)
  expect(row).toMatchObject({ doubled: 1 })
  expect(details).toHaveLength(1)
})

test('a later message that runs first is out of order', () => {
  expect(check({ seen: [asked('b'), asked('a')] }).row).toMatchObject({ outOfOrder: 1 })
})

test('a reply may be unknown only if it was sent while the network broke', () => {
  const unknown = { replies: ['a'], states: { b: 'ambiguous' } }
  expect(check({ ...unknown, phase: 'at' })).toMatchObject({ row: { ambiguous: 1 }, details: [] })
  expect(check(unknown).details).toEqual(['b of irc, written during the cut, has no reply on the platform: ambiguous'])
  expect(check({ replies: ['a'], phase: 'at' }).details).toEqual(['b of irc, written at the cut, has no reply on the platform: sent'])
})
