/** Finds the cases: `packages/<package>/src/testing/vm/<name>.vm.ts` and the same folder of `qa`. */
import { globSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { TEST_TIMEOUT_SECS, type VmCase } from './vm-case.ts'

/** A case and its file. */
export interface FoundCase {
  readonly name: string
  /** The absolute path. */
  readonly file: string
  readonly definition: VmCase
}

/** The root of the repository. */
export const ROOT = resolve(import.meta.dirname, '../../..')

/** Returns the named cases, or all of them sorted by name. Throws for an unknown name and for a case that cannot be imported. */
export async function findCases(names: readonly string[]): Promise<readonly FoundCase[]> {
  const files = globSync('{packages/*,qa}/src/testing/vm/*.vm.ts', { cwd: ROOT })
    .map((file) => ({ name: basename(file, '.vm.ts'), file: join(ROOT, file) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const unknown = names.find((name) => files.every((file) => file.name !== name))
  if (unknown !== undefined) throw new Error(`unknown case '${unknown}'; the cases are ${files.map(({ name }) => name).join(', ')}`)
  const wanted = files.filter(({ name }) => names.length === 0 || names.includes(name))
  return Promise.all(
    wanted.map(async ({ name, file }) => {
      const { default: definition } = (await import(file)) as { default: VmCase }
      return { name, file, definition }
    }),
  )
}

/** The time limit of a whole case. A hanging test ends at its own limit, so this one only ends a hanging guest. */
export const caseTimeoutSecs = ({ tests, testTimeoutSecs = TEST_TIMEOUT_SECS }: VmCase): number =>
  30 + Object.keys(tests).length * testTimeoutSecs
