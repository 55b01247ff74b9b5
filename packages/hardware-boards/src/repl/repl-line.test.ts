import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test, vi } from 'vitest'
import { memoryPort } from '../transports/memory-port.ts'
import { ReplLine } from './repl-line.ts'

describe('ReplLine', () => {
  test('ends a wait in time, with one timer, when a board never stops sending', async () => {
    const clock = testClock()
    const sleep = vi.spyOn(clock, 'sleep')
    const { near, far } = memoryPort()
    const line = new ReplLine(near, 'board_a0', clock)
    const reading = line.until('>>> ', { untilMs: 1000, signal: new AbortController().signal }, 8)
    for (let piece = 0; piece < 500; piece++) {
      await far.write(Buffer.from('abcdefgh'))
      await clock.advance(1)
    }
    await clock.advance(600)
    await expect(reading).resolves.toEqual({ bytes: Buffer.from('abcdefgh'), dropped: 499 * 8, isFound: false })
    expect(sleep).toHaveBeenCalledTimes(1)
    expect(clock.sleeping).toBe(0)
    line.stop()
  })
})
