/** The licences of the packages that an installation contains. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Licences that allow use in programs of any licence, and demand no more than a notice. */
const PERMISSIVE = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
]

/** Tells whether an SPDX expression lets the user choose a permissive licence. */
export function isPermissive(expression: string): boolean {
  const allowed = (text: string): boolean => PERMISSIVE.includes(text.replace(/[()]/g, '').trim())
  return expression.split(' OR ').some((choice) => choice.split(' AND ').every(allowed))
}

interface Locked {
  readonly version?: string
  readonly license?: string
  /** True for a package that is there only because a package expects it next to itself. */
  readonly peer?: true
}

/** Returns `path version: licence` of each installed package that has no permissive licence, without peers. `folder` has the lockfile of npm. */
export function licenceProblems(folder: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
  return Object.entries(packages)
    .filter(([path, { peer }]) => path !== '' && peer !== true)
    .filter(([, { license }]) => license === undefined || !isPermissive(license))
    .map(([path, { version, license }]) => `${path} ${version}: ${license}`)
}
