/** Cuts the network of every channel for a moment: what people write meanwhile arrives once and is answered once, in order. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kindNamesOf } from '../start-kinds.ts'
import { runLinks } from './run-links.ts'

const MS_MAX = 120_000

// A silent cut takes more than a minute, until the connections are given up: `pnpm chaos --suite links`.
test('after a cut of the network, every message has arrived once and is answered once', { timeout: MS_MAX }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-links-'))
  const options = { profile: 'minimal', seed: 1, dir, signal: AbortSignal.timeout(MS_MAX) }
  const { rows, violations } = await runLinks({ ...options, cut: 'reset', cutMs: 1000, messages: 5 })
  expect(violations, `log and history: ${dir}`).toEqual([])
  expect(rows.map(({ channel }) => channel)).toEqual(kindNamesOf('minimal').filter((name) => name !== 'post'))
  for (const { arrived, inGap, answeredOnce } of rows) expect([arrived + inGap, answeredOnce]).toEqual([5, arrived])
  rmSync(dir, { recursive: true, force: true })
})
