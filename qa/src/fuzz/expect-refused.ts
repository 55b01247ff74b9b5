/** Checks that a webhook accepts no mutation of its valid requests. */
import { createRandom } from '@sluice/testkit/random'
import { expect } from 'vitest'
import { fuzz } from './fuzz.ts'
import { schemeOf } from './schemes.ts'

/** Tries `count` mutations of the valid requests of a scheme. A scheme with bytes that its proof does not cover refuses their content. */
export async function expectRefused(name: string, count: number): Promise<void> {
  const random = createRandom(2)
  const scheme = await schemeOf(name, random)
  const { counts, same, findings } = await fuzz(scheme, { random, count })
  expect(findings.filter(({ outcome }) => outcome !== 'unreadable')).toEqual([])
  expect(counts.refused + counts.unreadable).toBe(count)
  expect(same).toBeLessThan(count)
  if (!scheme.hasMovableBytes) expect(counts.unreadable).toBe(0)
  else for (const { steps } of findings) expect(steps.at(-1)).toBe('forged')
}
