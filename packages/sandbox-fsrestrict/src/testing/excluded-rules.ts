/** Rules of the suites that Landlock cannot enforce, or that read files it hides. `fsrestrict-sandbox.slow.test.ts` tests the replacements. */
import type { LeftOut } from '@sluice/testkit/rules'

const OWN_PROCESS =
  'the rule reads /proc/self in a child of the shell, but a command sees only its own process in /proc, to hide other processes'

export const EXCLUDED_RULES: { readonly conformance: readonly LeftOut[]; readonly escapes: readonly LeftOut[] } = {
  conformance: [
    {
      rule: 'a command can read the files that programs need',
      why: 'the rule lists `/`, and Landlock grants a folder only with its whole content',
    },
    { rule: 'a command has no privileges and cannot gain any', why: OWN_PROCESS },
  ],
  escapes: [
    { rule: 'privileges: a command has none and gains none', why: OWN_PROCESS },
    { rule: 'privileges: setuid programs grant none', why: OWN_PROCESS },
    { rule: 'privileges: file capabilities grant none', why: OWN_PROCESS },
    { rule: 'terminals: a command has no controlling terminal', why: OWN_PROCESS },
  ],
}

/** The rules that Landlock enforces only since its version 6. */
export const NEEDS_ABI_6: readonly string[] = [
  'other processes cannot be signalled',
  'other processes: none is killed after a double fork',
  'other processes: none is killed by a descriptor',
  'other processes: none is killed by its group',
  'other processes: none is killed by its id',
  'other processes: none is killed by its thread',
]
