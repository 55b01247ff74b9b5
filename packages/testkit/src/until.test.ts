import { expect, test, vi } from 'vitest'
import { until } from './until.ts'

test('until takes steps while the condition does not hold', async () => {
  let steps = 0
  await until(
    () => steps === 3,
    async () => void steps++,
  )
  expect(steps).toBe(3)
  await until(
    async () => true,
    () => expect.unreachable('the condition holds'),
  )
})

test('until names the condition that never holds', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const never = until(
      () => 1 > 2,
      async () => vi.advanceTimersByTime(1000),
    )
    await expect(never).rejects.toThrow('this does not become true: () => 1 > 2')
  } finally {
    vi.useRealTimers()
  }
})
