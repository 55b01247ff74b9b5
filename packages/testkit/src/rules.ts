/** Rules of a conformance suite by title, so that a suite can be run, run in part, and tested itself. */
import { describe, expect, it } from 'vitest'

/** Checks by the rule they test; a check throws if the rule is broken. */
export type Rules = Readonly<Record<string, () => void | Promise<void>>>

/** A rule that a subject does not keep, and the reason. */
export interface LeftOut {
  readonly rule: string
  readonly why: string
}

/** Registers one test for each rule, and skips the rules of `except`. */
export function registerRules(title: string, rules: Rules, except: readonly LeftOut[] = []): void {
  describe(title, () => {
    it('every exception names a rule and gives a reason', () => {
      for (const { rule, why } of except) {
        expect(Object.keys(rules)).toContain(rule)
        expect(why).not.toBe('')
      }
    })
    for (const [rule, check] of Object.entries(rules)) it.skipIf(except.some((left) => left.rule === rule))(rule, check)
  })
}

/** Runs every rule and returns the titles of the broken ones. For tests of the suites themselves. */
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
