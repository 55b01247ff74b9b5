import { parseConfig } from '@sluice/config'
import type { Ownership } from '@sluice/ownership'
import type { DeletedRows, OwnedStore, Retention, StoreUsage } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { heldUntilMs, retentionOf, startRetention } from './retention.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 0, 1)
const NONE: DeletedRows = { messages: 0, contents: 0, replies: 0, approvals: 0, turns: 0, runs: 0, historyTurns: 0, conversations: 0 }

const configOf = (toml: string) => parseConfig({ features: [], dataDir: '/', configFile: 'config.toml', env: {} }, toml)

/** Starts retention on a store that returns `answers` one after the other, then nothing. */
async function pruning(upgradedAtMs: number | null, answers: readonly Partial<DeletedRows>[] = []) {
  const clock = testClock(NOW_MS)
  const stop = new AbortController()
  const asked: Retention[] = []
  const left = [...answers]
  const usage: StoreUsage = { bytes: 0, fileBytes: 0, upgradedAtMs, copies: [] }
  const config = await configOf('')
  const store = {
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
  return { clock, stop, asked }
}

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
