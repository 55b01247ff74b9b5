import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { interleavings } from '../testing/interleavings.ts'
import type { Tally } from '../testing/world.ts'

test('no interleaving of events, decisions and crashes breaks an audit rule', async () => {
  const tally: Tally = new Map()
  await fc.assert(interleavings(tally), { numRuns: effort(600), seed: 20_260_101 })
  const happened = [
    'record run_completed',
    'record run_failed',
    'record run_cancelled',
    'record step_cut',
    'record expired',
    'record rejected',
    'record run_waiting',
    'crash',
    'failed for now',
  ]
  expect(happened.filter((name) => (tally.get(name) ?? 0) < 5)).toEqual([])
}, 60_000)
