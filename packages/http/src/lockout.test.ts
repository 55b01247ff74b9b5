import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { createLockout } from './lockout.ts'

const limits = { failuresMax: 3, windowMs: 60_000, lockMs: 300_000 }

test('locks an address out after its third failure within the window', async () => {
  const clock = testClock()
  const lockout = createLockout({ clock, ...limits })
  for (let failure = 0; failure < 2; failure++) lockout.fail('a')
  lockout.check('a')
  lockout.fail('a')
  expect(() => lockout.check('a')).toThrow(expect.objectContaining({ code: 'rate_limited', retryAfterSecs: 300 }))
  lockout.check('b')
  await clock.advance(299_500)
  expect(() => lockout.check('a')).toThrow(expect.objectContaining({ retryAfterSecs: 1 }))
  await clock.advance(500)
  lockout.check('a')
  lockout.fail('a')
  lockout.check('a')
})

test('does not count failures older than the window or before a success', async () => {
  const clock = testClock()
  const lockout = createLockout({ clock, ...limits })
  lockout.fail('a')
  lockout.fail('a')
  await clock.advance(60_000)
  lockout.fail('a')
  lockout.check('a')
  lockout.fail('a')
  lockout.clear('a')
  lockout.fail('a')
  lockout.fail('a')
  lockout.check('a')
})

test('remembers a bounded number of addresses', () => {
  const lockout = createLockout({ clock: testClock(), ...limits, addressesMax: 2 })
  for (let failure = 0; failure < 3; failure++) lockout.fail('a')
  lockout.fail('b')
  lockout.fail('c')
  lockout.check('a')
})
