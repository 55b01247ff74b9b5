import { memoryKeyValue } from '@sluice/testkit/memory-store'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assignAliases } from './aliases.ts'
import type { FoundAdapter } from './find-adapters.ts'

const adapter = (serial: string, port: string, kind: FoundAdapter['kind'] = 'ch341a'): FoundAdapter => ({
  kind,
  serial,
  port,
  path: port,
})
const names = async (keyValue: ReturnType<typeof memoryKeyValue>, ...present: FoundAdapter[]) =>
  Object.fromEntries([...(await assignAliases(keyValue, present))].map(([alias, { serial, port }]) => [alias, serial || port]))

describe('assignAliases', () => {
  test('recognizes an adapter by its serial number at any port', async () => {
    const keyValue = memoryKeyValue()
    expect(await names(keyValue, adapter('a', '1-1'), adapter('b', '1-2'))).toEqual({ adapter0: 'a', adapter1: 'b' })
    expect(await names(keyValue, adapter('b', '1-1'))).toEqual({ adapter1: 'b' })
    expect(await names(keyValue, adapter('c', '1-1'), adapter('a', '1-9'))).toEqual({ adapter0: 'a', adapter2: 'c' })
  })

  test('loses no alias when two processes assign at once', async () => {
    const keyValue = memoryKeyValue()
    const [one, other] = await Promise.all([names(keyValue, adapter('a', '1-1')), names(keyValue, adapter('b', '1-2'))])
    expect(Object.keys({ ...one, ...other }).sort()).toEqual(['adapter0', 'adapter1'])
    expect(await names(keyValue, adapter('a', '1-1'), adapter('b', '1-2'))).toEqual({ ...one, ...other })
  })

  test('recognizes an adapter without a serial number by its port or kind', async () => {
    const keyValue = memoryKeyValue()
    expect(await names(keyValue, adapter('', '1-1'), adapter('', '1-2'))).toEqual({ adapter0: '1-1', adapter1: '1-2' })
    expect(await names(keyValue, adapter('', '1-2'))).toEqual({ adapter1: '1-2' })
    expect(await names(keyValue, adapter('', '1-2'), adapter('', '1-3'))).toEqual({ adapter0: '1-3', adapter1: '1-2' })
    expect(await names(keyValue, adapter('', '1-4', 'mcp2221'))).toEqual({ adapter2: '1-4' })
  })

  test('never gives a known alias to an adapter with a new serial number', async () => {
    const keyValue = memoryKeyValue()
    await names(keyValue, adapter('', '1-1'))
    expect(await names(keyValue, adapter('a', '1-1'))).toEqual({ adapter1: 'a' })
  })

  test('ignores stored data that it cannot read', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('aliases', { not: 'a list' })
    expect(await names(keyValue, adapter('a', '1-1'))).toEqual({ adapter0: 'a' })
  })

  test('gives each adapter one alias and remembers a bounded number', async () => {
    const one = fc.record({
      serial: fc.constantFrom('', 'a', 'b', 'c'),
      port: fc.integer({ min: 1, max: 99 }).map((number) => `1-${number}`),
    })
    const present = fc.uniqueArray(one, { maxLength: 8, selector: ({ serial, port }) => serial || port })
    await fc.assert(
      fc.asyncProperty(fc.array(present, { maxLength: 30 }), async (searches) => {
        const keyValue = memoryKeyValue()
        for (const search of searches) {
          const named = await assignAliases(
            keyValue,
            search.map(({ serial, port }) => adapter(serial, port)),
          )
          expect(new Set([...named.values()].map(({ serial, port }) => serial || port)).size).toBe(search.length)
        }
        expect(((await keyValue.get('aliases')) as unknown[] | undefined)?.length ?? 0).toBeLessThanOrEqual(64)
      }),
      { numRuns: 40 },
    )
  })
})
