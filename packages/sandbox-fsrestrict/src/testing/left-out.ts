/** Rules of the suites that Landlock cannot keep, or that look for something it hides; `own-promises.test.ts` has what stands in for them. */
import type { LeftOut } from '@sluice/testkit/rules'

const OWN_PROCESS =
  'it reads /proc/self in a child of the shell: of /proc a command sees itself alone, since more would show other processes'

export const LEFT_OUT: { readonly conformance: readonly LeftOut[]; readonly escapes: readonly LeftOut[] } = {
  conformance: [
    { rule: 'a command can read the files that programs need', why: 'it lists `/`: Landlock grants a folder with all that is below it' },
    { rule: 'a command has no privileges and cannot gain any', why: OWN_PROCESS },
  ],
  escapes: [
    { rule: 'privileges: a command has none and gains none', why: OWN_PROCESS },
    { rule: 'privileges: setuid programs grant none', why: OWN_PROCESS },
    { rule: 'privileges: file capabilities grant none', why: OWN_PROCESS },
    { rule: 'terminals: a command has no controlling terminal', why: OWN_PROCESS },
  ],
}

/** What kernels before Landlock's sixth version do not keep either. */
export const NEEDS_ABI_6: readonly string[] = [
  'other processes cannot be signalled',
  'other processes: none is killed after a double fork',
  'other processes: none is killed by a descriptor',
  'other processes: none is killed by its group',
  'other processes: none is killed by its id',
  'other processes: none is killed by its thread',
]
