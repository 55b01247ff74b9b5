import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { SendPace } from './send-pace.ts'

/** `round` runs as many sends as the pace allows, each of which takes `tookMs`. */
const bench = () => {
  const clock = testClock()
  const pace = new SendPace(clock, () => 1)
  const round = async (tookMs: number, end: (startedMs: number) => void) => {
    const [startedMs, count] = [clock.monotonicMs(), pace.concurrency]
    await clock.advance(tookMs)
    for (let send = 0; send < count; send++) end(startedMs)
    return pace.concurrency
  }
  const sent = (startedMs: number) => pace.sent(startedMs)
  return { clock, pace, round, sent }
}

describe('SendPace', () => {
  test('doubles with each round while the platform keeps up, up to 128', async () => {
    const { round, sent } = bench()
    const limits = []
    for (let rounds = 0; rounds < 6; rounds++) limits.push(await round(1000, sent))
    expect(limits).toEqual([16, 32, 64, 128, 128, 128])
  })

  test('stops growing when sends take more than twice as long as usual', async () => {
    const { round, sent } = bench()
    expect(await round(100, sent)).toBe(16)
    expect(await round(250, sent)).toBe(16)
    expect(await round(150, sent)).toBe(32)
  })

  test('is halved once by all refusals of a round, then grows by one a round', async () => {
    const { pace, round, sent } = bench()
    await round(100, sent)
    await round(100, sent)
    expect(pace.concurrency).toBe(32)
    expect(await round(100, (startedMs) => pace.refused(startedMs, 30))).toBe(16)
    expect(pace.pauseMs).toBe(0)
    const limits = []
    for (let rounds = 0; rounds < 3; rounds++) limits.push(await round(100, sent))
    expect(limits).toEqual([16, 17, 18])
  })

  test('pauses by Retry-After, up to a minute, when a single send is refused', async () => {
    const { clock, pace, round } = bench()
    for (const limit of [4, 2, 1]) expect(await round(100, (startedMs) => pace.refused(startedMs, 7))).toBe(limit)
    expect(await round(100, (startedMs) => pace.refused(startedMs, 7))).toBe(0)
    expect(pace.pauseMs).toBe(7000)
    await clock.advance(7000)
    expect(pace.concurrency).toBe(1)
    await round(100, (startedMs) => pace.refused(startedMs, 3600))
    expect(pace.pauseMs).toBe(60_000)
  })

  test('probes a platform that is away at least every 30 s, and resumes after one success', async () => {
    const { clock, pace, round, sent } = bench()
    const pauses = []
    for (let probes = 0; probes < 7; probes++) {
      await round(10, (startedMs) => pace.away(startedMs))
      pauses.push(pace.pauseMs)
      expect(pace.concurrency).toBe(0)
      await clock.advance(pace.pauseMs)
      expect(pace.concurrency).toBe(1)
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(await round(10, sent)).toBeGreaterThanOrEqual(8)
  })
})
