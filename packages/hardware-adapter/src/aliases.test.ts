import { memoryKeyValue } from '@sluice/testkit/memory-store'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assignAliases } from './aliases.ts'
import type { FoundAdapter } from './found-adapter.ts'

const adapter = (serial: string, place: string, kind: FoundAdapter['kind'] = 'ch341a'): FoundAdapter => ({
  kind,
  serial,
  place,
  path: place,
})
const names = async (keyValue: ReturnType<typeof memoryKeyValue>, ...present: FoundAdapter[]) =>
  Object.fromEntries([...(await assignAliases(keyValue, present))].map(([alias, { serial, place }]) => [alias, serial || place]))

test('§2.7 rule 4 an adapter keeps its alias by its serial number, wherever it is plugged in', async () => {
  const keyValue = memoryKeyValue()
  expect(await names(keyValue, adapter('a', '1-1'), adapter('b', '1-2'))).toEqual({ adapter0: 'a', adapter1: 'b' })
  expect(await names(keyValue, adapter('b', '1-1'))).toEqual({ adapter1: 'b' })
  expect(await names(keyValue, adapter('c', '1-1'), adapter('a', '1-9'))).toEqual({ adapter0: 'a', adapter2: 'c' })
})

test('one without a serial number is known by its place, and takes over from one of its kind that is gone', async () => {
  const keyValue = memoryKeyValue()
  expect(await names(keyValue, adapter('', '1-1'), adapter('', '1-2'))).toEqual({ adapter0: '1-1', adapter1: '1-2' })
  expect(await names(keyValue, adapter('', '1-2'))).toEqual({ adapter1: '1-2' })
  expect(await names(keyValue, adapter('', '1-2'), adapter('', '1-3'))).toEqual({ adapter0: '1-3', adapter1: '1-2' })
  expect(await names(keyValue, adapter('', '1-4', 'mcp2221'))).toEqual({ adapter2: '1-4' })
})

test('one with a serial number takes over nothing', async () => {
  const keyValue = memoryKeyValue()
  await names(keyValue, adapter('', '1-1'))
  expect(await names(keyValue, adapter('a', '1-1'))).toEqual({ adapter1: 'a' })
})

test('what was kept is not trusted', async () => {
  const keyValue = memoryKeyValue()
  await keyValue.set('aliases', { not: 'a list' })
  expect(await names(keyValue, adapter('a', '1-1'))).toEqual({ adapter0: 'a' })
})

test('no two adapters share an alias, nothing gets two, and the list stays bounded', async () => {
  const one = fc.record({ serial: fc.constantFrom('', 'a', 'b', 'c'), place: fc.integer({ min: 1, max: 99 }).map((port) => `1-${port}`) })
  const present = fc.uniqueArray(one, { maxLength: 8, selector: ({ serial, place }) => serial || place })
  await fc.assert(
    fc.asyncProperty(fc.array(present, { maxLength: 30 }), async (looks) => {
      const keyValue = memoryKeyValue()
      for (const look of looks) {
        const named = await assignAliases(
          keyValue,
          look.map(({ serial, place }) => adapter(serial, place)),
        )
        expect(new Set([...named.values()].map(({ serial, place }) => serial || place)).size).toBe(look.length)
      }
      expect(((await keyValue.get('aliases')) as unknown[] | undefined)?.length ?? 0).toBeLessThanOrEqual(64)
    }),
    { numRuns: 40 },
  )
})
