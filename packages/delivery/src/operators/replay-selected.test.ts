import type { DeliveryFilter } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { findOldest, replaySelected } from './replay-selected.ts'

interface Entry {
  readonly number: number
  readonly state: string
}

const entries = (count: number): Entry[] => Array.from({ length: count }, (_, index) => ({ number: index + 1, state: 'dead' }))

const listed = (all: readonly Entry[]) => ({
  list: async ({ limit, before = Number.MAX_SAFE_INTEGER, state }: DeliveryFilter) =>
    all
      .filter((entry) => entry.number < before && entry.state === state)
      .slice(-limit)
      .toReversed(),
})

test('selects the oldest 10,000 entries, and says whether there are more', async () => {
  const selection = { states: ['dead'], isSelected: () => true }
  const { numbers, more } = await findOldest(listed(entries(10_700)), selection)
  expect([numbers.length, numbers[0], numbers.at(-1), more]).toEqual([10_000, 1, 10_000, true])
  expect((await findOldest(listed(entries(10_000)), selection)).more).toBe(false)
})

test('reports entries whose content was deleted', async () => {
  const all = entries(3)
  const rows = { ...listed(all), get: async (number: number) => all[number - 1], replay: async (number: number) => number !== 2 }
  expect(await replaySelected(rows, { states: ['dead', 'dead'], isSelected: ({ number }) => number > 1 })).toEqual({
    replayed: [3],
    tooOld: [2],
    more: false,
  })
})
