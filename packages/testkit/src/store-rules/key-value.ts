/** Rules for durable keys and values. */
import { expect } from 'vitest'
import { ODD_TEXTS } from './samples.ts'
import type { StoreRules } from './store-bench.ts'

export const keyValueRules: StoreRules = {
  'stores, replaces and deletes a value': async ({ store, otherProcess }) => {
    const values = store.keyValue('feature')
    expect(await values.get('a')).toBeUndefined()
    for (const value of [null, false, 0, '', [1, { b: [] }], { text: 'a\ud800\0' }]) {
      await values.set('a', value)
      expect(await values.get('a')).toEqual(value)
    }
    expect(await (await otherProcess()).keyValue('feature').get('a')).toEqual({ text: 'a\ud800\0' })
    await values.delete('a')
    expect(await values.get('a')).toBeUndefined()
    await values.delete('a')
  },

  'an owner never sees the keys of another': async ({ store }) => {
    await store.keyValue('one').set('a', 1)
    await store.keyValue('two').set('a', 2)
    await store.keyValue('two').delete('a')
    expect(await store.keyValue('one').list('', 10)).toEqual([{ key: 'a', value: 1 }])
    expect(await store.keyValue('two').list('', 10)).toEqual([])
    expect(await store.keyValue('').list('', 10)).toEqual([])
  },

  'lists keys by code unit, with a literal prefix, up to the limit': async ({ store }) => {
    const values = store.keyValue('feature')
    const keys = ['b', 'a', 'a/2', 'a/1', 'A', 'a_', 'a%', 'ab', '\u{1f600}', '\uffff', '\uffff\uffffx', 'é']
    await Promise.all(keys.map((key) => values.set(key, key)))
    for (const prefix of ['', 'a', 'a/', 'a_', 'a%', '\u{1f600}', '\uffff', '\uffff\uffff', 'none']) {
      const expected = keys.filter((key) => key.startsWith(prefix)).sort()
      expect(await values.list(prefix, 100)).toEqual(expected.map((key) => ({ key, value: key })))
      expect(await values.list(prefix, 2)).toHaveLength(Math.min(2, expected.length))
    }
  },

  'accepts any text as a key and confuses no two': async ({ store }) => {
    const values = store.keyValue('feature')
    const keys = [...ODD_TEXTS, 'a\ud801b', 'a\ufffdb', 'a']
    await Promise.all(keys.map((key, at) => values.set(key, at)))
    expect(await Promise.all(keys.map((key) => values.get(key)))).toEqual(keys.map((_, at) => at))
    expect((await values.list('', 100)).map(({ key }) => key)).toEqual([...keys].sort())
  },

  'swaps a value only when it is the one that was read': async ({ store, otherProcess }) => {
    const values = store.keyValue('feature')
    expect(await values.swap('a', null, 1)).toBe(false)
    expect(await values.swap('a', undefined, { one: 1, two: [{ b: null }] })).toBe(true)
    expect(await values.swap('a', undefined, 2)).toBe(false)
    expect(await values.swap('a', { one: 1 }, 2)).toBe(false)
    const elsewhere = (await otherProcess()).keyValue('feature')
    expect(await elsewhere.swap('a', { two: [{ b: null }], one: 1 }, null)).toBe(true)
    expect(await values.swap('a', undefined, 2)).toBe(false)
    expect(await values.swap('a', null, undefined)).toBe(true)
    expect(await values.get('a')).toBeUndefined()
    expect(await values.swap('a', undefined, undefined)).toBe(true)
    expect(await values.list('', 10)).toEqual([])
  },

  'writes and deletes many keys in one commit': async ({ store, otherProcess }) => {
    const values = store.keyValue('feature')
    await values.setAll(new Map())
    await values.set('a', 1)
    const changes = new Map<string, unknown>(Array.from({ length: 1000 }, (_, at) => [`k/${at}`, { at }]))
    await values.setAll(changes.set('a', undefined).set('b', null))
    expect(await values.get('a')).toBeUndefined()
    const elsewhere = (await otherProcess()).keyValue('feature')
    expect(await elsewhere.list('b', 10)).toEqual([{ key: 'b', value: null }])
    expect(await elsewhere.list('k/', 2000)).toHaveLength(1000)
    expect(await elsewhere.get('k/999')).toEqual({ at: 999 })
  },

  'one of many simultaneous swaps wins, so that no update is lost': async ({ store, otherProcess }) => {
    const handles = [store.keyValue('feature'), (await otherProcess()).keyValue('feature')]
    const increment = async (values: (typeof handles)[number]): Promise<void> => {
      const before = await values.get('count')
      if (!(await values.swap('count', before, Number(before ?? 0) + 1))) await increment(values)
    }
    await Promise.all(Array.from({ length: 20 }, (_, at) => increment(handles[at % 2] ?? store.keyValue('feature'))))
    expect(await store.keyValue('feature').get('count')).toBe(20)
    const wins = await Promise.all(handles.map((values) => values.swap('lock', undefined, 'mine')))
    expect(wins.filter(Boolean)).toHaveLength(1)
  },

  'later changes to a value do not affect the stored copy': async ({ store }) => {
    const values = store.keyValue('feature')
    const value = { a: [1] }
    const written = values.set('k', value)
    value.a.push(2)
    await written
    expect(await values.get('k')).toEqual({ a: [1] })
  },
}
