import { AppError, type Channel } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { startTyping } from './typing.ts'

const SOON_MS = 500

function bench(typing?: (calls: number, signal: AbortSignal) => Promise<void>) {
  const clock = testClock()
  const shown: unknown[] = []
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 100, unit: 'utf16' },
    send: async () => ({ id: 'p' }),
    ...(typing && {
      async typing(to, signal) {
        shown.push(to)
        await typing(shown.length, signal)
      },
    }),
  }
  const lease = { isHeld: true, mayAct: () => lease.isHeld }
  return { clock, shown, lease, typing: startTyping({ channel, to: { to: 'room' }, clock, lease }) }
}

test('is not shown for a turn that ends soon', async () => {
  const { clock, shown, typing } = bench(async () => {})
  await clock.advance(SOON_MS - 1)
  typing.stop()
  await clock.advance(60_000)
  expect(shown).toEqual([])
  expect(clock.sleeping).toBe(0)
})

test('is shown soon, and again before platforms remove it, until the stop', async () => {
  const { clock, shown, typing } = bench(async () => {})
  await clock.advance(SOON_MS)
  expect(shown).toEqual([{ to: 'room' }])
  await clock.advance(8000)
  expect(shown).toHaveLength(3)
  typing.stop()
  await clock.advance(60_000)
  expect(shown).toHaveLength(3)
  expect(clock.sleeping).toBe(0)
})

test('is not shown while the lease of the turn is in doubt', async () => {
  const { clock, shown, lease, typing } = bench(async () => {})
  await clock.advance(SOON_MS)
  lease.isHeld = false
  await clock.advance(60_000)
  expect(shown).toHaveLength(1)
  lease.isHeld = true
  await clock.advance(8000)
  expect(shown.length).toBeGreaterThan(1)
  typing.stop()
})

test('is not shown while a person is asked', async () => {
  const { clock, shown, typing } = bench(async () => {})
  await clock.advance(SOON_MS)
  typing.pause(true)
  await clock.advance(60_000)
  expect(shown).toHaveLength(1)
  typing.pause(false)
  await clock.advance(4000)
  expect(shown).toHaveLength(2)
  typing.stop()
})

test('is tried again after the platform refused it', async () => {
  const { clock, shown, typing } = bench(() => Promise.reject(new AppError('forbidden', 'no')))
  await clock.advance(SOON_MS + 4000)
  expect(shown).toHaveLength(2)
  typing.stop()
})

test('aborts the call under way at the stop', async () => {
  let isAborted = false
  const { clock, typing } = bench(
    (_, signal) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          isAborted = true
          resolve()
        }),
      ),
  )
  await clock.advance(SOON_MS)
  typing.stop()
  expect(isAborted).toBe(true)
})

test('starts no timer for a channel that cannot show it', () => {
  const { clock, typing } = bench()
  expect(clock.sleeping).toBe(0)
  typing.stop()
})
