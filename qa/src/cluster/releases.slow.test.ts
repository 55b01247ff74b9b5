/** Releases N-1 and N side by side: messages arrive while a cluster is upgraded node by node and goes back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testSeed } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import { PREVIOUS_VERSION, previousRelease, schemaVersion } from './previous-release.ts'
import { clusterSummary, runCluster } from './run-cluster.ts'

const SECONDS = 150
const RUN_MS_MAX = 600_000
/** The previous release cannot judge the changes of this one to direct requests. */
const KINDS = ['chatapp', 'line', 'telegram']

test('nothing is lost or doubled while nodes of two releases share a database', { timeout: RUN_MS_MAX }, async (context) => {
  const previous = await previousRelease('full')
  if ('missing' in previous) return context.skip(previous.missing)
  expect(previous.schemaVersion).toBeLessThan(schemaVersion())
  const dir = mkdtempSync(join(tmpdir(), 'sluice-releases-'))
  const seed = testSeed()
  const options = {
    previous: previous.program,
    dir,
    seed,
    signal: context.signal,
    kinds: KINDS,
    messages: 5_000,
    seconds: SECONDS,
    rate: 8,
  }
  const change = 'change the release'
  const result = await runCluster({ ...options, faults: [change, 'revoke a device', 'change the configuration', change] })
  const { violations, acknowledged, messages, faults, followed } = clusterSummary(result)
  expect(violations, `seed ${seed}, history in ${dir}`).toEqual([])
  expect(acknowledged).toBe(messages)
  expect(messages).toBeGreaterThan(100)
  expect(faults[change]).toBe(2)
  // Until the last node of each round is replaced.
  expect(faults[`releases in the status: ${PREVIOUS_VERSION} and 0.1.0`]).toBe(4)
  expect(followed).toMatchObject({ revocation: { nodes: 3 }, configuration: { nodes: 3 } })
  rmSync(dir, { recursive: true, force: true })
})
