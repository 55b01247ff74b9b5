/** The tasks by which people look for settings. */
import { type FeatureId, ROWS } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { sectionKeys } from '../toml/schema-keys.ts'
import { CORE_SECTIONS } from './core-sections.ts'
import { SECTION_TASKS, TASKS, taskOfSection } from './section-tasks.ts'

const sections: readonly (readonly [owner: FeatureId | 'core', path: string])[] = [
  ...CORE_SECTIONS.map(({ path }) => ['core', path] as const),
  ...ROWS.flatMap(([id, { section, moreSections = [] }]) =>
    [...(section === undefined ? [] : [section]), ...moreSections].map((path) => [id, path] as const),
  ),
]

test.each(sections)('the section of %s at %s has a task and words', (owner, path) => {
  expect(taskOfSection(path, owner)).toEqual(expect.objectContaining({ task: expect.any(String), title: expect.stringMatching(/\S/) }))
})

test('each task has sections, except for that of other packages', () => {
  const used = new Set(sections.map(([owner, path]) => taskOfSection(path, owner)?.task))
  expect(Object.keys(TASKS).filter((task) => !used.has(task as keyof typeof TASKS))).toEqual(['other'])
})

test('no two sections have the same words', () => {
  const titles = new Map(sections.map(([owner, path]) => [path, taskOfSection(path, owner)?.title]))
  expect(new Set(titles.values()).size).toBe(titles.size)
})

test('each entry is a section, or a table in a section of the core, and names existing keys', () => {
  const paths = new Set(sections.map(([, path]) => path))
  for (const [path, { restart }] of Object.entries(SECTION_TASKS)) {
    const core = CORE_SECTIONS.find((section) => path === section.path || path.startsWith(`${section.path}.`))
    const names = core ? [...sectionKeys(core.schema).keys()] : []
    if (!paths.has(path)) expect(names, path).toContain(path.split('.').at(-1))
    if (Array.isArray(restart)) expect(names).toEqual(expect.arrayContaining(restart))
  }
})

test('a feature of a package of its own is grouped apart', () => {
  expect(taskOfSection('dice', 'x-dice')).toEqual({ task: 'other', title: 'dice' })
})
