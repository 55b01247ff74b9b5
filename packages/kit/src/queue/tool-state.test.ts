/** Tests the concurrency contract of shared state with random interleavings. */

import type { ClientId } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BoundedMap } from '../limits/bounded-map.ts'
import { PerClient, Shared } from './tool-state.ts'

describe('Shared', () => {
  test('runs each update alone and all calls in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(fc.boolean(), { maxLength: 12 }), async (scheduler, writes) => {
        const shared = new Shared<number[]>('test', [])
        let reading = 0
        let writing = 0
        const pause = () => scheduler.schedule(Promise.resolve())
        const work = writes.map((write, index) =>
          write
            ? shared.update(async (value) => {
                expect([reading, writing++]).toEqual([0, 0])
                await pause()
                writing--
                return [...value, index]
              })
            : shared.read(async (value) => {
                expect(writing).toBe(0)
                reading++
                const before = value.length
                await pause()
                expect(value.length).toBe(before)
                reading--
              }),
        )
        await scheduler.waitFor(Promise.all(work))
        const order = writes.flatMap((write, index) => (write ? [index] : []))
        expect(await scheduler.waitFor(shared.read((value) => value))).toEqual(order)
      }),
      { numRuns: 200 },
    )
  })

  test('runs reads at the same time', async () => {
    const shared = new Shared('test', 1)
    const both = Promise.withResolvers<void>()
    let inside = 0
    const read = () =>
      shared.read(() => {
        if (++inside === 2) both.resolve()
        return both.promise
      })
    await Promise.all([read(), read()])
  })

  test('passes an error to its own caller and releases the lock', async () => {
    const shared = new Shared('test', 1)
    const failed = shared.update(() => {
      throw new Error('mine')
    })
    await expect(failed).rejects.toThrow('mine')
    expect(await shared.update((value) => value + 1)).toBe(2)
  })
})

describe('PerClient', () => {
  const [a, b, c] = ['a', 'b', 'c'] as ClientId[] as [ClientId, ClientId, ClientId]

  test('separates clients and returns the state of a dropped one', () => {
    const names = new PerClient<string>('names', 2)
    expect([names.keep(a, 'one'), names.keep(b, 'two')]).toEqual([undefined, undefined])
    expect([names.find(a), names.find(b), names.find(c)]).toEqual(['one', 'two', undefined])
    expect(names.keep(a, 'newer')).toBeUndefined()
    expect([...names.entries()]).toEqual([
      [b, 'two'],
      [a, 'newer'],
    ])
    expect(names.keep(c, 'three')).toBe('two')
    expect([names.size, names.find(b)]).toEqual([2, undefined])
  })

  test('removes one client or all and returns their states', () => {
    const names = new PerClient<string>('names', 3)
    for (const client of [a, b, c]) names.keep(client, `of ${client}`)
    expect([names.forget(b), names.forget(b), names.size]).toEqual(['of b', undefined, 2])
    expect([names.clear(), names.size]).toEqual([['of a', 'of c'], 0])
  })
})

describe('BoundedMap', () => {
  test('behaves like a map in insertion order that drops the oldest key', () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('set' as const), key: fc.nat(20) }),
      fc.record({ do: fc.constant('delete' as const), key: fc.nat(20) }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(action, { maxLength: 200 }), (max, actions) => {
        const bounded = new BoundedMap<number, number>(max)
        const model = new Map<number, number>()
        for (const [index, step] of actions.entries()) {
          if (step.do === 'delete') expect(bounded.delete(step.key)).toBe(model.delete(step.key))
          else {
            const oldest = !model.has(step.key) && model.size === max ? model.keys().next().value : undefined
            if (oldest !== undefined) model.delete(oldest)
            model.set(step.key, index)
            expect(bounded.set(step.key, index)).toBe(oldest)
          }
          expect(bounded.size).toBe(model.size)
          expect(bounded.oldest()).toBe(model.keys().next().value)
        }
        expect([...bounded.entries()]).toEqual([...model])
      }),
    )
  })

  test('needs room for at least one key', () => expect(() => new BoundedMap(0)).toThrow(RangeError))
})
