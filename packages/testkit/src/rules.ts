/** Rules of a conformance suite: by what they promise, so that a suite can be run, excused from in part, and tested itself. */
import { describe, expect, it } from 'vitest'

/** By what is promised; a check throws where the promise is broken. */
export type Rules = Readonly<Record<string, () => void | Promise<void>>>

export interface LeftOut {
  readonly rule: string
  readonly why: string
}

/** One test for each rule that is not left out. */
export function holdRules(title: string, rules: Rules, except: readonly LeftOut[] = []): void {
  describe(title, () => {
    it('what is left out are rules, each with a reason', () => {
      for (const { rule, why } of except) {
        expect(Object.keys(rules)).toContain(rule)
        expect(why).not.toBe('')
      }
    })
    for (const [rule, check] of Object.entries(rules)) it.skipIf(except.some((left) => left.rule === rule))(rule, check)
  })
}

/** The rules that do not hold, by name. For tests of the suites themselves. */
export async function brokenRules(rules: Rules): Promise<string[]> {
  const broken: string[] = []
  for (const [rule, check] of Object.entries(rules)) {
    try {
      await check()
    } catch {
      broken.push(rule)
    }
  }
  return broken
}
