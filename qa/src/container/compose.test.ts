import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DRAIN_MS } from '@sluice/daemon/stop-times'
import { expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'

test('compose.yaml waits longer than the drain before it kills the daemon', () => {
  const [, secs] = /stop_grace_period: (\d+)s/.exec(readFileSync(join(ROOT, 'compose.yaml'), 'utf8')) ?? []
  expect(Number(secs) * 1000).toBeGreaterThan(DRAIN_MS + 5000)
})
