/** Kills the built bundle again and again, also at aimed instants, while each play goes on, and checks the promises of each capability. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testSeed } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import { PLAYS } from './all-plays.ts'
import { runPlay } from './run-play.ts'

/** `pnpm nightly` plays long runs, and expects that people write every kind of message. */
const IS_LONG = process.env.SLUICE_NIGHTLY === '1'
const LOOPS = IS_LONG ? 300 : 10
const MS_MAX = IS_LONG ? 3_600_000 : 240_000

test.each(Object.entries(PLAYS))('under SIGKILL the promises of the play %s hold', { timeout: MS_MAX }, async (_, start) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  const seed = testSeed()
  const signal = AbortSignal.timeout(MS_MAX)
  const { violations, rows, aimed } = await runPlay({ profile: 'minimal', seed, dir, signal, loops: LOOPS, start })
  expect(violations, `seed ${seed}; log and data: ${dir}`).toEqual([])
  const unplayed = rows.filter(({ accepted }) => accepted === 0).map(({ what }) => what)
  if (IS_LONG) expect(unplayed).toEqual([])
  else expect(unplayed.length).toBeLessThan(rows.length)
  expect(Object.keys(aimed)).not.toEqual([])
  rmSync(dir, { recursive: true, force: true })
})
