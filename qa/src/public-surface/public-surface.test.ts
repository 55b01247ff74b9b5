/** Compares this build with the last recorded release, so that a release does not break the programs and files of its users. */
import { FORMER_COMMANDS } from '@sluice/cli/former-commands'
import { FORMER_KEYS } from '@sluice/config'
import { beforeAll, expect, test } from 'vitest'
import { ACCEPTED } from './accepted.ts'
import { collectSurface } from './collect.ts'
import { compareSurface } from './compare.ts'
import type { Items } from './schema-items.ts'
import { recordedReleases, recordedSurface, SURFACES, type Surface } from './surfaces.ts'

const releases = recordedReleases()
const last = releases.at(-1) ?? ''
const surfaces = Object.keys(SURFACES) as Surface[]
let now: Record<Surface, Items>

beforeAll(async () => {
  now = await collectSurface('full')
}, 120_000)

/** Names that still work, with a warning. */
const FORMER: Partial<Record<Surface, readonly string[]>> = {
  configuration: FORMER_KEYS.map(({ key }) => key),
  commands: FORMER_COMMANDS.map(({ name }) => name),
}
const isPartOf = (item: string, name: string): boolean => item === name || item.startsWith(`${name}.`) || item.startsWith(`${name} `)
const isCarriedOver = (surface: Surface, item: string): boolean =>
  FORMER[surface]?.some((name) => isPartOf(item.replaceAll('[]', '.*'), name)) === true

const findingsOf = (surface: Surface) =>
  compareSurface(recordedSurface(last, surface) ?? {}, now[surface], SURFACES[surface]).filter(({ item }) => !isCarriedOver(surface, item))

const CURE = `Keep it, or carry it over with a warning for one minor release: docs/compatibility.md says how. When ${last} has warned, add a row to qa/src/public-surface/accepted.ts.`

test.each(surfaces)('the %s of the last release still work', (surface) => {
  const accepted = ACCEPTED.filter((row) => row.surface === surface).map(({ item }) => item)
  const broken = findingsOf(surface).filter(({ item }) => !accepted.includes(item))
  expect(
    broken.map(({ item, change }) => `${surface}: "${item}" ${change}. ${CURE}`),
    `compared with ${last}`,
  ).toEqual([])
})

test('each accepted change exists, and was announced by a recorded release', () => {
  for (const { surface, item, warnedIn } of ACCEPTED) {
    expect(findingsOf(surface).map((finding) => finding.item)).toContain(item)
    expect([...releases, 'security']).toContain(warnedIn)
  }
})

test('a former name is no present name, and becomes one', () => {
  for (const { name, becomes } of FORMER_COMMANDS) {
    expect(Object.keys(now.commands)).not.toContain(name)
    expect(Object.keys(now.commands)).toContain(becomes)
  }
  for (const { key, becomes } of FORMER_KEYS) {
    const items = Object.keys(now.configuration).map((item) => item.replaceAll('[]', '.*'))
    expect(items).not.toContain(key)
    if (becomes !== undefined) expect(items).toContain(becomes)
  }
})

test('every surface has items, and the last release has a record of all that it published', () => {
  for (const surface of surfaces) expect(Object.keys(now[surface]).length, surface).toBeGreaterThan(40)
  // Release 0.1.0 published no packages.
  const published = surfaces.filter((surface) => last !== '0.1.0' || surface !== 'packages')
  for (const surface of published) expect(Object.keys(recordedSurface(last, surface) ?? {}).length, surface).toBeGreaterThan(40)
})
