import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { createCursors } from './cursors.ts'
import { createIntake } from './intake.ts'

const ABORT = new AbortController().signal
const config = { channel_ids: [], mention_only: false, notification_channel_id: undefined, thread_replies: true }
const eventAt = (second: number) => ({
  event: { type: 'message', channel: 'C1', user: 'UADA', ts: `${1_767_225_600 + second}.000000`, text: 'x' },
})

test('at most 1,000 messages wait to be kept: the others are left to be looked for', async () => {
  const host = testHost()
  const waiting = Promise.withResolvers<void>()
  const api = { url: 'https://slack.com/api/', call: () => Promise.reject(new AppError('unavailable', 'no answer')) }
  const reader = { account: 'A0123', bot: 'UBOT', config }
  const cursors = createCursors(host)
  const intake = createIntake({ host, api, cursors, reader, deliver: () => waiting.promise, signal: ABORT })
  const taken = Array.from({ length: 1000 }, (_, index) => intake.take('events_api', eventAt(index)))
  await expect(intake.take('events_api', eventAt(1000))).rejects.toMatchObject({ code: 'unavailable' })
  waiting.resolve()
  await Promise.all(taken)
  // It could not be looked for yet, so the cursor stays before it and all others.
  expect(cursors.list()).toEqual([{ channel: 'C1', upTo: '1767225599.999000' }])
})
