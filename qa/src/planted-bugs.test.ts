import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

interface PlantedBug {
  readonly name: string
}

interface Table {
  readonly MUTANTS: readonly PlantedBug[]
  readonly CLUSTER_MUTANTS: readonly PlantedBug[]
  stalePatches(mutant: PlantedBug, root: string): readonly string[]
}

test('every planted bug of `pnpm mutants` fits the current sources and has a unique name', async () => {
  const { MUTANTS, CLUSTER_MUTANTS, stalePatches } = (await import(join(ROOT, 'scripts/mutants-table.mjs'))) as Table
  expect([...MUTANTS, ...CLUSTER_MUTANTS].flatMap((mutant) => stalePatches(mutant, ROOT))).toEqual([])
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length)
})
