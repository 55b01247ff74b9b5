import { describe, expect, test } from 'vitest'
import { Company } from './company.ts'

/** Commits until one waits to see who comes; how many that took. */
function untilLook(company: Company, units: number): number {
  for (let commits = 0; commits < 10_000; commits++) {
    if (!company.isComplete(units)) return commits
    company.committed(units)
  }
  throw new Error('nobody looks any more')
}

describe('the company a commit waits for', () => {
  test('one writer alone is not held up', () => {
    expect(new Company().isComplete(1)).toBe(true)
  })

  test('those who came together are waited for, and no longer once fewer came', () => {
    const company = new Company()
    company.committed(8)
    expect(company.isComplete(7)).toBe(false)
    expect(company.isComplete(8)).toBe(true)
    company.committed(5)
    expect(company.isComplete(5)).toBe(true)
  })

  test('two groups that take turns become one after a look', () => {
    const company = new Company()
    company.committed(8)
    untilLook(company, 8)
    company.committed(16)
    expect(company.isComplete(8)).toBe(false)
    expect(company.isComplete(16)).toBe(true)
  })

  test('where nobody else ever comes, looks become rare; where somebody came, they are frequent again', () => {
    const company = new Company()
    const pauses = [1, 2, 3, 4].map(() => {
      const pause = untilLook(company, 1)
      company.committed(1)
      return pause
    })
    expect(pauses.every((pause, at) => at === 0 || pause > 1.5 * (pauses[at - 1] ?? 0))).toBe(true)
    untilLook(company, 1)
    company.committed(4)
    expect(untilLook(company, 4)).toBeLessThan(pauses[1] ?? 0)
  })
})
