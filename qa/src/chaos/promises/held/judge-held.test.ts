import { gatewayText, type InboxEntry, type OutboxRow } from '@sluice/sdk'
import { expect, test } from 'vitest'
import type { SopsView } from '../../sops/history.ts'
import type { Tally } from '../tally.ts'
import type { HeldRecord } from './held-record.ts'
import { judgeMessages } from './judge-messages.ts'
import { judgeRuns } from './judge-runs.ts'

const MARK = 'chaos-000001'
const NOTICE = gatewayText('unanswered', {})
const NOTHING: HeldRecord = { messages: [], events: new Map(), effects: [], sends: [], delivered: [] }

/** Returns the figures that are not zero, by the name of the row. */
const figuresOf = (tallies: readonly Tally[]) =>
  Object.fromEntries(
    tallies.flatMap(({ row: { what, accepted: _, ...figures } }) => {
      const found = Object.entries(figures).filter(([, count]) => count > 0)
      return found.length > 0 ? [[what, Object.fromEntries(found)]] : []
    }),
  )

interface Run {
  readonly row?: object
  readonly said?: readonly string[]
  /** The texts of the queued rows, and the texts that the platform has. */
  readonly queued?: readonly string[]
  readonly shown?: readonly string[]
}

function judged(message: object, { row, said = [], queued = [], shown = queued }: Run) {
  const held = { mark: MARK, channel: 'telegram', id: '1', chat: '7', ...message }
  const inbox = row ? [{ channel: 'telegram', messageId: '1', number: 1, ...row }] : []
  const outbox = queued.map((text, number) => ({ channel: 'telegram', to: { to: '7' }, text, number, state: 'sent' }))
  const delivered = shown.map((text) => ({ channel: 'telegram', chat: '7', text }))
  const view = { problems: [], inbox: inbox as InboxEntry[], outbox: outbox as unknown as OutboxRow[], sessions: [{ id: 's', said }] }
  return figuresOf(judgeMessages({ ...NOTHING, messages: [held], delivered }, view))
}

const DEAD = { state: 'dead', error: 'refused: 400' }
const toldOf = (number: number): string => `Refused. \`sluice inbox replay ${number}\` runs it again.`

test.each([
  ['nothing wrong with one notice', { row: DEAD, queued: [NOTICE, toldOf(1)] }, {}],
  ['a lost message', {}, { 'notices to senders': { lost: 1 } }],
  ['a lost notice', { row: DEAD, queued: [toldOf(1)] }, { 'notices to senders': { lost: 1 } }],
  ['a notice of two', { row: DEAD, queued: [NOTICE, NOTICE, toldOf(1)] }, { 'notices to senders': { toldTwice: 1 } }],
  ['a notice that operators lack', { row: DEAD, queued: [NOTICE] }, { 'notices to operators': { lost: 1 } }],
  [
    'a notice that operators have twice',
    { row: DEAD, queued: [NOTICE, toldOf(1), toldOf(1)] },
    { 'notices to operators': { toldTwice: 1 } },
  ],
])('finds %s of a message that the model refuses', (_, run, figures) => {
  expect(judged({ refusal: 'request', agent: 'main' }, run)).toEqual(figures)
})

const DONE = { state: 'done' }
const REPLY = `to ${MARK}`

test.each([
  ['nothing wrong with one reply', { row: DONE, said: [MARK], queued: [REPLY] }, {}],
  ['a lost message', {}, { 'replies that fall back': { lost: 1 } }],
  ['a message that waits', { row: { state: 'pending' } }, { 'replies that fall back': { unfinished: 1 } }],
  ['a doubled message', { row: DONE, said: [MARK, MARK], queued: [REPLY] }, { 'replies that fall back': { doubled: 1 } }],
  ['a lost reply', { row: DONE, said: [MARK], queued: [REPLY], shown: [] }, { 'replies that fall back': { lost: 1 } }],
  [
    'a reply that was sent twice',
    { row: DONE, said: [MARK], queued: [REPLY], shown: [REPLY, REPLY] },
    { 'replies that fall back': { toldTwice: 1 } },
  ],
])('finds %s of a message whose reply is refused in part', (_, run, figures) => {
  expect(judged({ fallback: 'slack markup' }, run)).toEqual(figures)
})

const runOf = (status = 'completed') => ({
  status,
  event: { payload: JSON.stringify({ mark: MARK }) },
  results: [{ status: 'completed', step: 1 }],
})

test.each([
  ['nothing wrong with one run', [runOf()], [`work/1 ${MARK}`], {}],
  ['a lost event', [], [], { 'runs held back': { lost: 1 } }],
  ['a run that has not ended', [runOf('running')], [`work/1 ${MARK}`], { 'runs held back': { unfinished: 1 } }],
  ['a doubled run', [runOf(), runOf()], [`work/1 ${MARK}`], { 'runs held back': { doubled: 1 } }],
  ['a step without its effect', [runOf()], [], { 'runs held back': { lost: 1 } }],
  ['an effect of two', [runOf()], [`work/1 ${MARK}`, `work/1 ${MARK}`], { 'runs held back': { doubled: 1 } }],
])('finds %s', (_, runs, effects, figures) => {
  const view = { problems: [], runs, audit: [], approvals: [], outbox: [], lines: [] } as unknown as SopsView
  expect(figuresOf(judgeRuns({ ...NOTHING, events: new Map([[MARK, '/work']]), effects }, view))).toEqual(figures)
})
