import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Bench, CASES, setUpBench } from './cases.ts'
import { makeScratchFolders, type ScratchFolders } from './scratch-folders.ts'
import { compileShim } from './shim.ts'

/** A small part of the full suite, `pnpm chaos:disk`. */
const SIZE = { arrivals: 24, cuts: 20, outcomes: 2, faults: 1, failedSyncs: 1, cutsAfterFailedSync: 10 }
const SEED = 1

describe('the disk', () => {
  let folders: ScratchFolders
  let shim: ReturnType<typeof compileShim>
  let bench: Bench
  beforeAll(async () => {
    folders = makeScratchFolders()
    shim = compileShim(folders.libraries)
    if ('path' in shim) bench = await setUpBench({ shim: shim.path, root: folders.states, seed: SEED, size: SIZE })
  })
  beforeEach(({ skip }) => {
    if ('missing' in shim) skip(shim.missing)
  })
  afterAll(() => folders.remove())

  test.each(CASES)('$title', async ({ mustFind, run }) => {
    const { states, problems } = await run(bench)
    expect(states).toBeGreaterThan(0)
    if (mustFind === undefined) expect(problems).toEqual([])
    else expect(problems.join('\n')).toContain(mustFind)
  })
})
