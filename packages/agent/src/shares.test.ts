import type { ClientShares } from '@sluice/config'
import { expect, test } from 'vitest'
import type { LimitedClient } from './admission.ts'
import { Shares } from './shares.ts'

const ANN: LimitedClient = { client: 'device:ann', standing: 'listed' }
const BOB: LimitedClient = { client: 'device:bob', standing: 'listed' }
const OWNER: LimitedClient = { client: 'device:owner', standing: 'operator' }

const small: ClientShares = { turnsRunning: 3, turnsWaiting: 2, waitingBytes: 100, streams: 2, downloads: 2, attachmentBytes: 1024 * 1024 }
const none = Number.POSITIVE_INFINITY
const open: ClientShares = {
  turnsRunning: none,
  turnsWaiting: none,
  waitingBytes: none,
  streams: none,
  downloads: none,
  attachmentBytes: none,
}
const shares = () => new Shares({ sharesOf: ({ standing }) => (standing === 'operator' ? open : small) })

test('refuses what exceeds the share of a client, and nothing of other clients', () => {
  const subject = shares()
  subject.take(ANN, 'downloads')
  const second = subject.take(ANN, 'downloads')
  expect(() => subject.take(ANN, 'downloads')).toThrow(
    expect.objectContaining({
      code: 'share_used',
      status: 429,
      retryAfterSecs: 5,
      message: expect.stringContaining('downloads of [limits]'),
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
    using _ = subject.take(ANN, 'waitingBytes', 60)
    expect(() => subject.take(ANN, 'waitingBytes', 41)).toThrow('waiting_mb of [limits]')
    expect(subject.heldBy(ANN, 'waitingBytes')).toBe(60)
  }
  expect(subject.heldBy(ANN, 'waitingBytes')).toBe(0)
  subject.take(ANN, 'waitingBytes', 100)
})

test('checks an amount that is counted elsewhere', () => {
  const subject = shares()
  subject.check(ANN, 'attachmentBytes', 1024 * 1024)
  expect(() => subject.check(ANN, 'attachmentBytes', 1024 * 1024 + 1)).toThrow('more than 1 MB (attachments_mb of [limits])')
})

test('never refuses an operator', () => {
  const subject = shares()
  for (let n = 0; n < 100; n++) subject.take(OWNER, 'streams')
  subject.check(OWNER, 'attachmentBytes', 1e15)
  expect(subject.heldBy(OWNER, 'streams')).toBe(100)
})
