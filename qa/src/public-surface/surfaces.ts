/** The public surfaces, and where a release keeps its record of them: `qa/fixtures/public-surface/<version>/<surface>.json`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../daemons/bundle.ts'
import type { Direction } from './compare.ts'
import type { Items } from './schema-items.ts'

/** What semantic versions cover; docs/compatibility.md describes each surface. */
export const SURFACES = {
  configuration: 'in',
  commands: 'in',
  requests: 'in',
  answers: 'out',
  events: 'out',
  packages: 'in',
} as const satisfies Readonly<Record<string, Direction>>

export type Surface = keyof typeof SURFACES

export const RECORDS = join(ROOT, 'qa/fixtures/public-surface')

const byNumber = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

/** Returns the recorded releases, oldest first. */
export const recordedReleases = (): string[] =>
  readdirSync(RECORDS)
    .filter((name) => /^\d/.test(name))
    .sort(byNumber)

/** Returns undefined for a surface that the release did not have yet. */
export function recordedSurface(release: string, surface: Surface): Items | undefined {
  const file = join(RECORDS, release, `${surface}.json`)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Items) : undefined
}
