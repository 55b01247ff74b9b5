/** On a clock that stands still. */
import { AppError, type Channel } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { startTyping } from './typing.ts'

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
  return { clock, shown, typing: startTyping({ channel, to: { to: 'room' }, clock }) }
}

test('it is shown at once, and again before platforms take it away, until it stops', async () => {
  const { clock, shown, typing } = bench(async () => {})
  expect(shown).toEqual([{ to: 'room' }])
  await clock.advance(8000)
  expect(shown).toHaveLength(3)
  typing.stop()
  await clock.advance(60_000)
  expect(shown).toHaveLength(3)
  expect(clock.sleeping).toBe(0)
})

test('nobody types while a person is asked', async () => {
  const { clock, shown, typing } = bench(async () => {})
  typing.pause(true)
  await clock.advance(60_000)
  expect(shown).toHaveLength(1)
  typing.pause(false)
  await clock.advance(4000)
  expect(shown).toHaveLength(2)
  typing.stop()
})

test('a platform that refuses it is asked again, and nobody hears of it', async () => {
  const { clock, shown, typing } = bench(() => Promise.reject(new AppError('forbidden', 'no')))
  await clock.advance(4000)
  expect(shown).toHaveLength(2)
  typing.stop()
})

test('a call under way ends with it', async () => {
  let isCut = false
  const { typing } = bench(
    (_, signal) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          isCut = true
          resolve()
        }),
      ),
  )
  typing.stop()
  expect(isCut).toBe(true)
})

test('a channel that shows none costs nothing', () => {
  const { clock, typing } = bench()
  expect(clock.sleeping).toBe(0)
  typing.stop()
})
