import { expect, test } from 'vitest'
import { definitionsOf } from './definition.ts'
import { changesOf } from './definition-changes.ts'

const [accepted, present] = [
  { description: 'Looks up.', inputSchema: { properties: { id: { type: 'string', enum: ['a'] }, old: { type: 'number' } } } },
  { description: 'Looks\nup.\u001b[2J', inputSchema: { properties: { id: { type: 'string', enum: ['a', 'b'] }, new: {} } } },
].map((listed) => definitionsOf([{ name: 'look', ...listed }]).tools[0] ?? expect.fail('no definition'))

test('shows each value that differs, on one line without control characters', () => {
  if (!accepted || !present) throw new Error('no definitions')
  expect(changesOf(accepted, present)).toEqual([
    '- description: "Looks up."',
    String.raw`+ description: "Looks\nup.\\u001b[2J"`,
    '- parameters.properties.id.enum: ["a"]',
    '+ parameters.properties.id.enum: ["a","b"]',
    '+ parameters.properties.new: {}',
    '- parameters.properties.old.type: "number"',
  ])
  expect(changesOf(present, present)).toEqual([])
})

test('shows everything of a tool that was never accepted', () => {
  if (!accepted) throw new Error('no definition')
  expect(changesOf(undefined, accepted)).toEqual([
    '+ description: "Looks up."',
    '+ readOnlyHint: false',
    '+ parameters.type: "object"',
    '+ parameters.properties.id.type: "string"',
    '+ parameters.properties.id.enum: ["a"]',
    '+ parameters.properties.old.type: "number"',
  ])
})
