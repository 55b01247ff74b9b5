/** The short form of `pnpm chaos --suite cluster`: the rules hold for messages that meet a kill, a stop and a crash of PostgreSQL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testSeed } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import { clusterSummary, runCluster } from './run-cluster.ts'

const SECONDS = 25
const RUN_MS_MAX = 400_000
/** Direct requests have tests of their own. */
const KINDS = ['chatapp', 'line', 'telegram']

test('messages to three nodes are kept, run in order and answered once through faults', { timeout: RUN_MS_MAX }, async ({ signal }) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-cluster-'))
  const seed = testSeed()
  const options = { dir, seed, signal, kinds: KINDS, messages: 1_000, seconds: SECONDS, rate: 4 }
  const result = await runCluster({ ...options, faults: ['kill', 'suspend', 'kill PostgreSQL'] })
  const { violations, acknowledged, messages } = clusterSummary(result)
  expect(violations, `seed ${seed}, history in ${dir}`).toEqual([])
  expect(acknowledged).toBe(messages)
  expect(messages).toBeGreaterThan(50)
  rmSync(dir, { recursive: true, force: true })
})
