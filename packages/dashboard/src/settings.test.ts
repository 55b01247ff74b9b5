/** The settings of the configuration page: sections by task, search, and what differs from the default. */
import { describe, expect, test } from 'vitest'
import { differs, finder, type Known, type Schema, sectionAround, sectionsOf, settingsOf, wordsOf } from '../page/src/data/settings.ts'

const text = { type: 'string' } as const
const SCHEMA: Schema = {
  properties: {
    gateway: {
      title: 'Address',
      'x-task': 'network',
      properties: {
        port: { type: 'integer', default: 42_617, description: 'Port to bind' },
        texts: { title: 'Texts', 'x-task': 'platforms', properties: { stopped: text } },
      },
    },
    mcp: {
      title: 'Servers',
      'x-task': 'agents',
      properties: {
        serve: { properties: { enabled: { type: 'boolean', default: false } } },
        servers: { additionalProperties: { properties: { url: text, token: { ...text, writeOnly: true } } } },
      },
    },
    agents: { title: 'Further agents', 'x-task': 'agents', properties: {}, additionalProperties: { properties: { model: text } } },
  },
}
const sections = sectionsOf(SCHEMA, (path) => (path === 'mcp.servers' ? ['git.hub'] : []))
const known = (key: string, value: unknown, source: Known['source'] = 'file'): readonly [string, Known] => [key, { key, value, source }]

describe('sections', () => {
  test('have the tables in them, except for tables that are sections', () => {
    const tables = sections.map(({ path, task, parts, unnamed }) => [path, task, parts.map((part) => part.path), unnamed])
    expect(tables).toEqual([
      ['gateway', 'network', ['gateway'], []],
      ['gateway.texts', 'platforms', ['gateway.texts'], []],
      ['mcp', 'agents', ['mcp.serve', 'mcp.servers."git.hub"'], []],
      ['agents', 'agents', [], ['agents']],
    ])
  })

  test.each([
    ['gateway', 'gateway'],
    ['gateway.texts', 'gateway.texts'],
    ['mcp.servers."git.hub"', 'mcp'],
    ['gatewayx', undefined],
  ])('the table %s is found in the section %s', (path, section) => {
    expect(sectionAround(sections, path)?.path).toBe(section)
  })
})

describe('search', () => {
  const values = new Map([known('gateway.port', 1234), known('mcp.servers."git.hub".token', '[secret]')])
  test.each([
    ['PORT', ['gateway.port']],
    ['bind', ['gateway.port']],
    ['1234', ['gateway.port']],
    ['address bind', ['gateway.port']],
    ['bind stopped', []],
    ['git.hub', ['mcp.servers."git.hub".url', 'mcp.servers."git.hub".token']],
    ['[secret]', []],
  ])('%s is found in keys, words, descriptions and values, but not in secrets', (query, keys) => {
    const isFound = finder(query, values)
    const found = sections.flatMap((section) => settingsOf(section).filter((setting) => isFound(section, setting)))
    expect(found.map(({ key }) => key)).toEqual(keys)
  })
})

test.each([
  ['a value of the file', { type: 'integer', default: 1 }, known('a', 2), true],
  ['a value of the environment', { type: 'integer', default: 1 }, known('a', 2, 'environment'), true],
  ['the default in the file', { type: 'array', default: ['x'] }, known('a', ['x']), false],
  ['the default', { type: 'integer' }, known('a', 2, 'default'), false],
  ['a secret', { type: 'string', writeOnly: true }, known('a', '[secret]'), true],
])('%s differs from the default or not', (_, schema, [, value], isChanged) => {
  expect(differs({ key: 'a', name: 'a', schema }, value)).toBe(isChanged)
})

test.each([
  ['max_iterations', 'Max iterations'],
  ['tool_timeout_secs', 'Tool timeout (seconds)'],
  ['usd_per_day', 'USD per day'],
  ['public_url', 'Public URL'],
  ['retention_mb', 'Retention (megabytes)'],
  ['hours', 'Hours'],
])('the key %s is %s in words', (name, words) => {
  expect(wordsOf(name)).toBe(words)
})
