/** What every backend promises about the agent's memory. */
import { expect } from 'vitest'
import type { StoreRules } from '../store.ts'
import { ODD_TEXTS } from './samples.ts'

const entry = (key: string, content: string, atMs = 1) => ({ key, content, category: 'core', atMs })

export const memoryRules: StoreRules = {
  'an entry is kept, replaced by its key, and deleted': async ({ store: { memory } }) => {
    await memory.put(entry('colour', 'green', 1))
    expect(await memory.get('colour')).toEqual({ key: 'colour', content: 'green', category: 'core', updatedAtMs: 1 })
    await memory.put({ ...entry('colour', 'blue', 2), category: 'daily' })
    expect(await memory.get('colour')).toEqual({ key: 'colour', content: 'blue', category: 'daily', updatedAtMs: 2 })
    expect(await memory.search('green', 10)).toEqual([])
    expect(await memory.delete('colour')).toBe(true)
    expect(await memory.get('colour')).toBeUndefined()
    expect(await memory.search('blue', 10)).toEqual([])
    expect(await memory.delete('colour')).toBe(false)
  },

  'a search finds any of the words, in keys and contents, whatever their case and accents': async ({ store: { memory } }) => {
    await memory.put(entry('favourite_drink', 'Crème brûlée latte'))
    await memory.put(entry('pet', 'a dog named Zoë'))
    const keys = async (query: string) => (await memory.search(query, 10)).map(({ key }) => key)
    expect(await keys('CREME')).toEqual(['favourite_drink'])
    expect(await keys('drink')).toEqual(['favourite_drink'])
    expect(await keys('what is zoe?')).toEqual(['pet'])
    expect((await keys('dog latte')).sort()).toEqual(['favourite_drink', 'pet'])
    expect(await keys('cat')).toEqual([])
  },

  'the best match comes first': async ({ store: { memory } }) => {
    await memory.put(entry('a', 'the garden has a tree and a bench and a gate and a long path'))
    await memory.put(entry('b', 'the tree in the garden'))
    await memory.put(entry('c', 'the kitchen'))
    expect((await memory.search('tree garden', 10)).map(({ key }) => key)).toEqual(['b', 'a'])
    expect((await memory.search('tree garden', 1)).map(({ key }) => key)).toEqual(['b'])
  },

  'an empty query lists the newest': async ({ store: { memory } }) => {
    for (const [at, key] of ['a', 'b', 'c'].entries()) await memory.put(entry(key, 'x', at))
    await memory.put(entry('a', 'y', 9))
    for (const query of ['', '  \n']) expect((await memory.search(query, 2)).map(({ key }) => key)).toEqual(['a', 'c'])
  },

  'any text is a valid query and can be remembered': async ({ store: { memory } }) => {
    const queries = [
      '"',
      '""',
      "'",
      '*',
      'a*',
      'AND',
      'NOT x',
      'x NEAR y',
      'key:x',
      '-x',
      '^x',
      '(',
      '{a b}: c',
      '?',
      '%',
      'a+b',
      '\\',
      'a b '.repeat(500),
    ]
    for (const [at, text] of [...ODD_TEXTS, ...queries].entries()) {
      await memory.put(entry(`k${at}`, text))
      expect((await memory.get(`k${at}`))?.content).toBe(text.toWellFormed())
      await memory.search(text, 5)
    }
    expect((await memory.search('"dog', 5)).length).toBe(0)
  },
}
