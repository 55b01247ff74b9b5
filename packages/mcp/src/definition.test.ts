import { describe, expect, test } from 'vitest'
import { definitionsOf, TOOLS_MAX } from './definition.ts'

const tool = (name: string, changes: object = {}) => ({ name, inputSchema: { type: 'object' }, ...changes })

describe('definitionsOf', () => {
  test('the hash changes with the description, the schema and the hint', () => {
    const hash = (changes: object) => definitionsOf([tool('a', changes)]).tools[0]?.hash
    const hashes = [
      {},
      { description: 'x' },
      { inputSchema: { type: 'object', properties: { a: {} } } },
      { annotations: { readOnlyHint: true } },
    ].map(hash)
    expect(new Set(hashes).size).toBe(4)
    expect(hash({})).toBe(hash({ title: 'A' }))
  })

  test('shortens a description and makes control characters visible', () => {
    const [read] = definitionsOf([tool('a', { description: `\u001b[2J\u202e${'d'.repeat(5000)}` })]).tools
    expect(read?.description).toMatch(/^\\u001b\[2J\\u202ed+$/)
    expect(read?.description.length).toBeLessThan(2050)
  })

  test('leaves out what is too large, unnamed or has the name of another', () => {
    const huge = tool('huge', { description: 'd'.repeat(70_000) })
    const { tools, problems } = definitionsOf([tool('a'), tool('a', { description: 'other' }), tool(''), huge])
    expect(tools.map(({ name, description }) => [name, description])).toEqual([['a', '']])
    expect(problems).toEqual([
      "'a' is left out: another tool has the same name",
      "'' is left out: its name must have 1 to 256 characters",
      "'huge' is left out: its definition has more than 65536 characters",
    ])
  })

  test('reads a tool whose schema is a union, and leaves out one that is malformed', () => {
    const union = { anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }, { type: 'object' }] }
    const { tools, problems } = definitionsOf([tool('a'), tool('union', { inputSchema: union }), { name: 7 }, null, tool('b')])
    expect(tools.map(({ name, inputSchema }) => [name, inputSchema.type])).toEqual([
      ['a', 'object'],
      ['union', 'object'],
      ['b', 'object'],
    ])
    expect(problems).toEqual(['tool 3 of its list is left out: name is malformed', 'tool 4 of its list is left out: it is malformed'])
  })

  test('reads a description of null as none', () => {
    const { tools, problems } = definitionsOf([{ ...tool('a'), description: null }])
    expect([tools.map(({ description }) => description), problems]).toEqual([[''], []])
  })

  test('reads a limited number of tools', () => {
    const { tools, problems } = definitionsOf(Array.from({ length: 10_000 }, (_, at) => tool(`t${at}`)))
    expect([tools.length, problems.length]).toEqual([TOOLS_MAX, TOOLS_MAX])
  })
})
