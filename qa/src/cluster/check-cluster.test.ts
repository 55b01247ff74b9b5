/** Each rule of a cluster finds what breaks it, and nothing in a history that keeps all rules. */
import { describe, expect, test } from 'vitest'
import type { Message, OutboxSeen, Seen, StoreView } from '../chaos/history.ts'
import { type ClusterHistory, checkCluster } from './check-cluster.ts'

const MARKS = ['chaos-000001', 'chaos-000002'] as const
const [ONE, TWO] = MARKS

const messageOf = (mark: string): Message => ({ mark, kind: 'chatapp', sender: 'ada', id: `id-${mark}`, parts: 1, usesTool: true })
const replyOf = (mark: string, number: number): OutboxSeen => ({
  number,
  channel: 'chatapp',
  parts: [{ mark, part: 1 }],
  state: 'sent',
  attempts: 1,
  isInterrupted: false,
  error: null,
  endedAtMs: 1,
})
const lifeOf = (mark: string): Seen[] => [
  { type: 'posted', marks: [mark] },
  { type: 'acked', marks: [mark] },
  { type: 'asked', mark, afterTool: false },
  { type: 'effect', mark },
  { type: 'asked', mark, afterTool: true, result: 'ran' },
  { type: 'sending', channel: 'chatapp', parts: [{ mark, part: 1 }], fault: null },
]

const HISTORY: ClusterHistory = {
  attemptsMax: 100,
  dropRepeats: [],
  messages: MARKS.map(messageOf),
  seen: MARKS.flatMap(lifeOf),
  delivered: MARKS.map((mark) => ({ channel: 'chatapp', parts: [{ mark, part: 1 }] })),
  events: [['c-1', 'c-2'], ['c-2']],
  followed: [
    { change: 'revocation', node: 'node-1', tookMs: 900 },
    { change: 'configuration', node: 'node-1', tookMs: 1_900 },
  ],
}
const STORE: StoreView = {
  problems: [],
  inbox: MARKS.map((mark, at) => ({
    number: at + 1,
    channel: 'chatapp',
    account: 'a',
    id: `id-${mark}`,
    state: 'done',
    attempts: 1,
    isAnswer: false,
  })),
  outbox: MARKS.map((mark, at) => replyOf(mark, at + 1)),
  questions: [],
  notices: [],
  lines: [],
  sessions: [MARKS],
  summaries: [],
  unfinished: [],
  failed: [],
}

const rulesOf = (history: Partial<ClusterHistory>, store: Partial<StoreView> = {}): string[] => [
  ...new Set(checkCluster({ ...HISTORY, ...history }, { ...STORE, ...store }).map(({ rule }) => rule)),
]

test('a history that keeps all rules has no violation', () => expect(rulesOf({})).toEqual([]))

test('numbers are not an order: a message with a lower number may be committed later', () =>
  expect(rulesOf({}, { inbox: STORE.inbox.map((row) => ({ ...row, number: 3 - row.number })) })).toEqual([]))

const [, second] = STORE.outbox
const broken: readonly (readonly [string, string, Partial<ClusterHistory>, Partial<StoreView>])[] = [
  ['lost', 'an acknowledged message is not stored', {}, { inbox: STORE.inbox.slice(1), sessions: [[TWO]] }],
  [
    'lost',
    'an acknowledged message still waits in the end',
    {},
    { inbox: STORE.inbox.map((row) => ({ ...row, state: 'pending' })), sessions: [] },
  ],
  ['lost', 'a message was given up too early', {}, { inbox: STORE.inbox.map((row) => ({ ...row, state: 'dead' })), sessions: [] }],
  ['once', 'a message is stored twice', {}, { inbox: [...STORE.inbox, ...STORE.inbox.slice(1)] }],
  ['once', 'the end of a turn was committed twice', {}, { sessions: [[ONE, TWO, TWO]] }],
  ['once', 'a reply was queued twice', {}, { outbox: [...STORE.outbox, replyOf(TWO, 3)] }],
  ['order', 'history has the later message first', {}, { sessions: [[TWO, ONE]] }],
  ['order', 'the later message began first', { seen: [...lifeOf(ONE).slice(0, 2), ...lifeOf(TWO), ...lifeOf(ONE).slice(2)] }, {}],
  ['order', 'the later reply was sent first', {}, { outbox: STORE.outbox.map((row) => ({ ...row, number: 3 - row.number })) }],
  ['sent once', 'a reply was sent twice without a mark', { delivered: [...HISTORY.delivered, ...HISTORY.delivered.slice(1)] }, {}],
  ['sent', 'a reply is recorded as sent, but nobody has it', { delivered: HISTORY.delivered.slice(1) }, {}],
  ['sent', 'a reply waits in the end', {}, { outbox: [replyOf(ONE, 1), { ...replyOf(TWO, 2), state: 'queued' }] }],
  ['effect', 'a call was made again after its result', { seen: [...HISTORY.seen, { type: 'effect', mark: ONE }] }, {}],
  ['revocation', 'a node let a revoked device in', { followed: [{ change: 'revocation', node: 'node-1', tookMs: null }] }, {}],
  ['revocation', 'a node took long to revoke', { followed: [{ change: 'revocation', node: 'node-1', tookMs: 1_800 }] }, {}],
  ['configuration', 'a node kept its configuration', { followed: [{ change: 'configuration', node: 'node-1', tookMs: 4_000 }] }, {}],
  ['events', 'a subscriber got an event twice', { events: [['c-1', 'c-2', 'c-1']] }, {}],
]
for (const [rule, title, history, store] of broken) test(`${rule}: ${title}`, () => expect(rulesOf(history, store)).toContain(rule))

const POST: Message = { mark: ONE, kind: 'post', sender: 'ada', id: `key-${ONE}`, parts: 0, usesTool: false }
const failing = (...between: readonly Seen[]): Seen[] => [
  { type: 'posted', marks: [ONE] },
  ...between,
  { type: 'failed', mark: ONE, code: 'upstream' },
]
const CUT: readonly Seen[] = [
  { type: 'world', node: 'node-1', isCut: true },
  { type: 'world', node: 'node-1', isCut: false },
]
const direct = (seen: readonly Seen[], sessions: StoreView['sessions'] = [[ONE]]): string[] =>
  rulesOf({ messages: [POST], seen, delivered: [] }, { inbox: [], outbox: [], sessions })

describe('a direct request that failed', () => {
  const repeated: readonly Seen[] = [
    { type: 'posted', marks: [ONE] },
    { type: 'acked', marks: [ONE] },
  ]
  test('is repeated by its sender and answered, if a node had no way to the model', () =>
    expect(direct([...failing(...CUT), ...repeated])).toEqual([]))
  test('is a violation while every node has the model', () => {
    expect(direct([...failing(), ...repeated])).toEqual(['accepted'])
    expect(direct([...CUT, ...failing(), ...repeated])).toEqual(['accepted'])
    expect(direct([...failing(...CUT), ...failing(), ...repeated])).toEqual(['accepted'])
  })
  test('has to be answered in the end', () => expect(direct([...failing(...CUT), ...repeated], [])).toEqual(['lost']))
})

test('a reply that was sent twice has to say that this is not known', () =>
  expect(
    rulesOf(
      { delivered: [...HISTORY.delivered, ...HISTORY.delivered.slice(1)] },
      { outbox: [replyOf(ONE, 1), { ...(second ?? replyOf(TWO, 2)), state: 'ambiguous' }] },
    ),
  ).toEqual([]))

test('a call is made again by the repeat of a direct request whose turn failed', () => {
  const seen: Seen[] = [...HISTORY.seen, { type: 'effect', mark: ONE }]
  expect(rulesOf({ seen }, { failed: [{ mark: ONE, attempts: 1 }] })).toEqual([])
})
