import { testClock } from '@sluice/testkit/clock'
import { expect, test, vi } from 'vitest'
import { memoryPort } from '../transports/memory-port.ts'
import { createIncoming } from './incoming.ts'

test('a board that talks without an end takes one timer a wait, and its time is up all the same', async () => {
  const clock = testClock()
  const sleep = vi.spyOn(clock, 'sleep')
  const { near, far } = memoryPort()
  const incoming = createIncoming(near, 'board_a0', clock)
  const reading = incoming.until('>>> ', { untilMs: 1000, signal: new AbortController().signal, bytesMax: 8 })
  for (let piece = 0; piece < 500; piece++) {
    await far.write(Buffer.from('abcdefgh'))
    await clock.advance(1)
  }
  await clock.advance(600)
  await expect(reading).resolves.toEqual({ bytes: Buffer.from('abcdefgh'), dropped: 499 * 8, found: false })
  expect(sleep).toHaveBeenCalledTimes(1)
  expect(clock.sleeping).toBe(0)
  incoming.stop()
})
