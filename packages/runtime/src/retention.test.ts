import { parseConfig } from '@sluice/config'
import type { Ownership } from '@sluice/ownership'
import type { DeletedRows, KeyValue, OwnedStore, Retention, StoreUsage } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { heldUntilMs, retentionOf, startRetention } from './retention.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 0, 1)
const NONE: DeletedRows = { messages: 0, contents: 0, replies: 0, approvals: 0, turns: 0, runs: 0, historyTurns: 0, conversations: 0 }

const configOf = (toml: string) => parseConfig({ features: [], dataDir: '/', configFile: 'config.toml', env: {} }, toml)

/** Starts retention on a store that returns `answers` one after the other, then nothing. */
async function pruning(
  upgradedAtMs: number | null,
  answers: readonly Partial<DeletedRows>[] = [],
  { clock = testClock(NOW_MS), values = new Map<string, unknown>() } = {},
) {
  const stop = new AbortController()
  const asked: Retention[] = []
  const left = [...answers]
  const usage: StoreUsage = { bytes: 0, fileBytes: 0, upgradedAtMs, copies: [] }
  const config = await configOf('')
  const keys = { get: async (key: string) => values.get(key), set: async (key: string, value: unknown) => void values.set(key, value) }
  const store = {
    keyValue: () => keys as unknown as KeyValue,
    usage: async () => usage,
    async prune(retention: Retention) {
      asked.push(retention)
      return { ...NONE, ...left.shift() }
    },
  }
  const ownership: Pick<Ownership, 'whileHolding'> = {
    async whileHolding(name, work, signal) {
      if (name === 'leader/prune') await work({} as OwnedStore, signal)
    },
  }
  const pruneRuns = async () => {}
  startRetention(
    {
      store,
      ownership,
      clock,
      log: testHost().log,
      config: () => config,
      files: { sweep: async () => {} },
      overheard: { sweep: async () => {} },
      people: { sweep: async () => {} },
      pruneRuns,
    },
    stop.signal,
  )
  return { clock, stop, asked, values }
}

/** The clock as a process sees it that starts now. */
const shifted = (clock: TestClock): TestClock => ({
  ...clock,
  nowMs: () => clock.nowMs(),
  monotonicMs: () => clock.monotonicMs(),
  get sleeping() {
    return clock.sleeping
  },
})

describe('retention', () => {
  test('keeps deliveries, turns and runs for seven days, conversations permanently', async () => {
    expect(retentionOf(await configOf(''), NOW_MS)).toMatchObject({
      endedBeforeMs: NOW_MS - 7 * DAY_MS,
      idsBeforeMs: NOW_MS - 3 * DAY_MS,
      keysBeforeMs: NOW_MS - 300_000,
      historyBeforeMs: Number.NEGATIVE_INFINITY,
      bytesMax: 512 * 1024 * 1024,
    })
    const settings = '[delivery]\nretention_days = 2\nretention_mb = 5\n[sessions]\nretention_days = 30\n'
    expect(retentionOf(await configOf(settings), NOW_MS)).toMatchObject({
      endedBeforeMs: NOW_MS - 2 * DAY_MS,
      historyBeforeMs: NOW_MS - 30 * DAY_MS,
      bytesMax: 5 * 1024 * 1024,
    })
  })

  test('deletes nothing in the seven days after an upgrade', async () => {
    const { clock, stop, asked } = await pruning(NOW_MS - 7 * DAY_MS + 90_000)
    await clock.advance(60_000)
    expect(asked).toEqual([
      expect.objectContaining({
        endedBeforeMs: Number.NEGATIVE_INFINITY,
        historyBeforeMs: Number.NEGATIVE_INFINITY,
        bytesMax: Number.MAX_SAFE_INTEGER,
        nowMs: NOW_MS + 60_000,
      }),
    ])
    await clock.advance(60_000)
    expect(asked[1]).toMatchObject({ endedBeforeMs: NOW_MS + 120_000 - 7 * DAY_MS, bytesMax: 512 * 1024 * 1024 })
    stop.abort()
  })

  test('deletes nothing because of its age in the seven days after the clock was set far ahead, also after a restart', async () => {
    const first = await pruning(null)
    const { clock, values } = first
    await clock.advance(60_000)
    const limits = { endedBeforeMs: NOW_MS + 60_000 - 7 * DAY_MS, bytesMax: 512 * 1024 * 1024 }
    expect(first.asked.at(-1)).toMatchObject(limits)
    clock.jump(365 * DAY_MS)
    const held = { endedBeforeMs: Number.NEGATIVE_INFINITY, historyBeforeMs: Number.NEGATIVE_INFINITY, bytesMax: limits.bytesMax }
    await clock.advance(60_000)
    expect(first.asked.at(-1)).toMatchObject(held)
    first.stop.abort()
    const second = await pruning(null, [], { clock: shifted(clock), values })
    await clock.advance(60_000)
    expect(second.asked.at(-1)).toMatchObject(held)
    clock.jump(-365 * DAY_MS)
    await clock.advance(60_000)
    expect(second.asked.at(-1)).toMatchObject({ ...limits, endedBeforeMs: clock.nowMs() - 7 * DAY_MS })
    clock.jump(DAY_MS)
    await clock.advance(60_000)
    expect(second.asked.at(-1)).toMatchObject({ ...limits, endedBeforeMs: clock.nowMs() - 7 * DAY_MS })
    clock.jump(365 * DAY_MS)
    await clock.advance(60_000)
    expect(second.asked.at(-1)).toMatchObject(held)
    await clock.advance(7 * DAY_MS)
    expect(second.asked.at(-1)).toMatchObject({ ...limits, endedBeforeMs: clock.nowMs() - 7 * DAY_MS })
    second.stop.abort()
  })

  test('does not hold a store that was never upgraded, or whose clock was set back', () => {
    expect(heldUntilMs(null, NOW_MS)).toBeUndefined()
    expect(heldUntilMs(NOW_MS, NOW_MS)).toBe(NOW_MS + 7 * DAY_MS)
    expect(heldUntilMs(NOW_MS + 30 * DAY_MS, NOW_MS)).toBeUndefined()
  })

  test('prunes again at once while a kind reaches its limit', async () => {
    const { clock, stop, asked } = await pruning(null, [{ historyTurns: 2_000 }, { turns: 2_000 }, { historyTurns: 1 }])
    await clock.advance(60_000)
    for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve))
    expect(asked).toHaveLength(3)
    stop.abort()
  })
})
