import { type ClientShares, NO_SHARES } from '@sluice/config'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import type { LimitedClient } from './admission.ts'
import { Shares } from './shares.ts'

const ANN: LimitedClient = { client: 'device:ann', standing: 'listed' }
const BOB: LimitedClient = { client: 'device:bob', standing: 'listed' }
const OWNER: LimitedClient = { client: 'device:owner', standing: 'operator' }

const small: ClientShares = { turnsRunning: 3, turnsWaiting: 2, waitingBytes: 100, streams: 2, downloads: 2, attachmentBytes: 1024 * 1024 }
const guests: ClientShares = { ...small, pool: { key: 'strangers', turnsWaiting: 3, attachmentBytes: 0 } }

function bench() {
  const clock = testClock()
  const { events, emitted } = testHost({ clock })
  const sharesOf = ({ standing }: LimitedClient) => (standing === 'operator' ? NO_SHARES : standing === 'stranger' ? guests : small)
  return { subject: new Shares({ clock, events, sharesOf }), emitted, clock }
}

const shares = () => bench().subject

test('refuses what exceeds the share of a client, and nothing of other clients', () => {
  const subject = shares()
  subject.take(ANN, 'downloads')
  const second = subject.take(ANN, 'downloads')
  expect(() => subject.take(ANN, 'downloads')).toThrow(
    expect.objectContaining({
      code: 'share_used',
      status: 429,
      retryAfterSecs: 5,
      message: expect.stringContaining('[limits] downloads'),
    }),
  )
  subject.take(BOB, 'downloads')
  subject.take(ANN, 'streams')
  second.release()
  second.release()
  subject.take(ANN, 'downloads')
  expect(() => subject.take(ANN, 'downloads')).toThrow('You are downloading 2 files')
  expect([subject.heldBy(ANN, 'downloads'), subject.heldBy(BOB, 'downloads')]).toEqual([2, 1])
})

test('counts amounts until the end of their scope', () => {
  const subject = shares()
  {
    using _ = subject.takeWaiting(ANN, 60)
    expect(() => subject.takeWaiting(ANN, 41)).toThrow('[limits] waiting_mb')
    expect(subject.heldBy(ANN, 'waitingBytes')).toBe(60)
  }
  expect(subject.heldBy(ANN, 'waitingBytes')).toBe(0)
  subject.takeWaiting(ANN, 100).release()
  subject.takeWaiting(ANN, 1)
  subject.takeWaiting(ANN, 1)
  expect(() => subject.takeWaiting(ANN, 1)).toThrow('2 of your turns are waiting')
})

test('names the share that a waiting turn would exceed, also that of all strangers', () => {
  const { subject } = bench()
  const stranger = (name: string): LimitedClient => ({ client: name, standing: 'stranger' })
  expect(subject.exceededBy(stranger('s1'), 101)).toBeUndefined()
  const held = ['s1', 's1', 's2'].map((name) => subject.countWaiting(stranger(name), 10))
  expect(subject.exceededBy(stranger('s1'), 1)).toEqual({ key: 's1', limit: 'turns_waiting', value: 2 })
  expect(subject.exceededBy(stranger('s2'), 91)).toEqual({ key: 's2', limit: 'waiting_mb', value: 0 })
  expect(subject.exceededBy(stranger('s3'), 1)).toEqual({ key: 'strangers', limit: 'turns_waiting', value: 3 })
  expect(subject.exceededBy(ANN, 1)).toBeUndefined()
  for (const { release } of held) release()
  expect(subject.exceededBy(stranger('s1'), 1)).toBeUndefined()
  expect(subject.list(10)).toEqual([])
})

test('reports a used up share once an hour, and lists what clients hold', async () => {
  const { subject, emitted, clock } = bench()
  for (let n = 0; n < 2; n++) subject.take(ANN, 'streams')
  subject.take(BOB, 'streams')
  for (let n = 0; n < 3; n++) expect(() => subject.take(ANN, 'streams')).toThrow('You have 2 streams open')
  const event = expect.objectContaining({ type: 'limit_reached', client: 'device:ann', limit: 'streams', value: 2 })
  expect(emitted).toEqual([event])
  await clock.advance(3_600_000)
  expect(() => subject.take(ANN, 'streams')).toThrow()
  expect(emitted).toEqual([event, event])
  expect(subject.list(10)).toEqual([
    { client: 'device:ann', share: 'streams', held: 2 },
    { client: 'device:bob', share: 'streams', held: 1 },
  ])
})

test('checks an amount that is counted elsewhere', () => {
  const subject = shares()
  subject.check(ANN, 'attachmentBytes', 1024 * 1024)
  expect(() => subject.check(ANN, 'attachmentBytes', 1024 * 1024 + 1)).toThrow('more than 1 MB')
})

test('checks kept attachments by the share of the client and by that of all strangers', () => {
  const subject = shares()
  const { attachmentBytes: own } = small
  subject.checkAttachments(ANN, { own, pool: 1 })
  expect(() => subject.checkAttachments(ANN, { own: own + 1, pool: 0 })).toThrow('more than 1 MB')
  const guest: LimitedClient = { client: 'channel:x/bot/eve', standing: 'stranger' }
  subject.checkAttachments(guest, { own, pool: 0 })
  expect(() => subject.checkAttachments(guest, { own, pool: 1 })).toThrow('[limits.strangers.pool] attachments_mb')
})

test('names the share of files: with linked accounts for the files of a person, and no limit for an operator', () => {
  const linked: LimitedClient = { ...ANN, person: 'device:bob' }
  const subject = new Shares({
    clock: testClock(),
    events: { emit: () => {} },
    sharesOf: ({ standing }) => (standing === 'operator' ? NO_SHARES : small),
    besides: ({ person }) => (person === undefined ? [] : [person]),
  })
  expect(subject.ofFiles(linked, 'device:ann')).toMatchObject({ others: ['device:bob'], limit: { max: { own: small.attachmentBytes } } })
  expect(subject.ofFiles(linked, 'channel:x/bot/room')).toMatchObject({ others: [] })
  expect(subject.ofFiles(OWNER, OWNER.client).limit).toBeUndefined()
})

test('never refuses an operator', () => {
  const subject = shares()
  for (let n = 0; n < 100; n++) subject.take(OWNER, 'streams')
  subject.check(OWNER, 'attachmentBytes', 1e15)
  expect(subject.heldBy(OWNER, 'streams')).toBe(100)
})
