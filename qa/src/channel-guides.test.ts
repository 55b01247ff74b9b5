/** The README of each channel says, step by step, how it is set up; the page of the dashboard shows these steps with a field for each key. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sectionKeys } from '@sluice/config'
import { sectionsOfFeature } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { CHANNELS } from './channels.ts'

interface Way {
  readonly title: string
  readonly section: string
  readonly keys: readonly string[]
  readonly steps: readonly string[]
  readonly saving: number
}

const script = join(import.meta.dirname, '../../scripts/channel-guides.mjs')
const { channelGuides } = (await import(pathToFileURL(script).href)) as { channelGuides(): Readonly<Record<string, readonly Way[]>> }
const GUIDES = channelGuides()

describe.each(CHANNELS)('$id', ({ id, row, feature, testing }) => {
  const ways = GUIDES[id] ?? []

  test('has steps at the platform, one of which saves the section', () => {
    expect(ways.length).toBeGreaterThan(0)
    for (const { steps, saving } of ways) {
      expect(steps.length).toBeGreaterThan(2)
      expect(steps[saving]).toMatch(/^Fill in the section below and start Sluice/)
      expect(steps.filter((step) => step.includes('section below'))).toHaveLength(1)
    }
    expect(new Set(ways.map(({ title }) => title)).size).toBe(ways.length)
  })

  test('names each key of its examples in a step, and has no other key there', () => {
    for (const { section, keys, steps } of ways) {
      const same = CHANNELS.filter((other) => other.id === id || other.row.section === row.section)
      const known = same.flatMap((other) => sectionsOfFeature(other.feature).flatMap(({ schema }) => [...sectionKeys(schema).keys()]))
      expect(
        keys.filter((key) => !known.includes(key)),
        section,
      ).toEqual([])
      expect(
        keys.filter((key) => !steps.some((step) => step.includes(`\`${key}\``))),
        section,
      ).toEqual([])
    }
  })

  test('has each required key, and the list of people who may write, in an example', () => {
    const { schema } = feature.section ?? {}
    if (!schema) throw new Error(`${id} has no section.`)
    const required = [...sectionKeys(schema)].flatMap(([key, { schema: value }]) =>
      v.safeParse(value as v.GenericSchema, undefined).success ? [] : [key],
    )
    for (const { keys } of ways) expect(keys).toEqual(expect.arrayContaining(required))
    if (testing.noPlatform === undefined) for (const { keys } of ways) expect(keys.filter((key) => /^allowed_/.test(key))).not.toEqual([])
  })

  test('shows the address that the platform calls', async () => {
    const { fake, section } = await testing.connect(() => 0)
    await using _closed = { [Symbol.asyncDispose]: () => fake.close() }
    const { webhook } = feature.build(testHost(), v.parse(feature.section?.schema ?? v.any(), section)).channels?.[0] ?? {}
    const steps = ways.flatMap((way) => way.steps).join('\n')
    if (webhook) expect(steps).toContain(`<public url>${webhook.path}`)
  })
})
