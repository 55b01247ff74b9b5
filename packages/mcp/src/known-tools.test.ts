import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { mcpSection } from './config.ts'
import { definitionsOf } from './definition.ts'
import { KnownTools } from './known-tools.ts'

const [config] = Object.values(v.parse(mcpSection.schema, { servers: { a: { command: 'x' } } }).servers)
if (!config) throw new Error('no server')
const definitions = (...names: string[]) => definitionsOf(names.map((name) => ({ name, inputSchema: {} }))).tools
const nothingElse = { resources: false, prompts: false }

test('loses no change when several come at once', async () => {
  const keyValue = memoryKeyValue()
  const known = new KnownTools(keyValue, 'a', config)
  await known.update(definitions('one'), nothingElse)
  const [two, three] = definitions('two', 'three')
  if (!two || !three) throw new Error('no definitions')
  await Promise.all([known.accept([two]), known.update(definitions('one', 'two', 'three'), nothingElse), known.accept([three])])
  const again = new KnownTools(keyValue, 'a', config)
  await again.load()
  expect(again.tools.map((tool) => [tool.name, again.isAccepted(tool)])).toEqual([
    ['one', true],
    ['two', true],
    ['three', true],
  ])
})

test('ignores a kept list that it cannot read, and one of another program', async () => {
  const keyValue = memoryKeyValue()
  await keyValue.set('server:a', { tools: 'broken' })
  const known = new KnownTools(keyValue, 'a', config)
  await known.load()
  expect(known.isKnown).toBe(false)
  await known.update(definitions('one'), nothingElse)
  const other = new KnownTools(keyValue, 'a', { ...config, args: ['--other'] })
  await other.load()
  expect([other.isKnown, other.tools]).toEqual([false, []])
})
