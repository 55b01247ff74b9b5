/** Rules for the agent's memory. */
import { SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { expect } from 'vitest'
import { ODD_TEXTS } from './samples.ts'
import type { StoreRules } from './store-bench.ts'

const ME = 'device:me'
const OTHER = 'device:other'

const entry = (key: string, content: string, atMs = 1) => ({ owner: ME, key, content, category: 'core', untrusted: false, atMs })

export const memoryRules: StoreRules = {
  'stores, replaces and deletes an entry by key': async ({ store: { memory } }) => {
    await memory.put(entry('colour', 'green', 1))
    expect(await memory.get(ME, 'colour')).toEqual({
      ...{ owner: ME, key: 'colour', content: 'green', category: 'core', untrusted: false, updatedAtMs: 1 },
    })
    await memory.put({ ...entry('colour', 'blue', 2), category: 'daily', untrusted: true })
    expect(await memory.get(ME, 'colour')).toEqual({
      ...{ owner: ME, key: 'colour', content: 'blue', category: 'daily', untrusted: true, updatedAtMs: 2 },
    })
    expect(await memory.search(ME, 'green', 10)).toEqual([])
    expect(await memory.delete(ME, 'colour')).toBe(true)
    expect(await memory.get(ME, 'colour')).toBeUndefined()
    expect(await memory.search(ME, 'blue', 10)).toEqual([])
    expect(await memory.delete(ME, 'colour')).toBe(false)
  },

  'a search matches any word in keys and contents, ignoring case and accents': async ({ store: { memory } }) => {
    await memory.put(entry('favourite_drink', 'Crème brûlée latte'))
    await memory.put(entry('pet', 'a dog named Zoë'))
    const keys = async (query: string) => (await memory.search(ME, query, 10)).map(({ key }) => key)
    expect(await keys('CREME')).toEqual(['favourite_drink'])
    expect(await keys('drink')).toEqual(['favourite_drink'])
    expect(await keys('what is zoe?')).toEqual(['pet'])
    expect((await keys('dog latte')).sort()).toEqual(['favourite_drink', 'pet'])
    expect(await keys('cat')).toEqual([])
  },

  'says of each entry whether text of others led to it, however it is read': async ({ store: { memory } }) => {
    await memory.put({ ...entry('page', 'read in a page'), untrusted: true })
    await memory.put(entry('own', 'read in a book'))
    const lists = await Promise.all([
      ...[memory.search(ME, '', 9), memory.search(ME, 'read', 9), memory.similar(ME, 'read', 9)],
      ...[memory.list({ limit: 9 }), memory.list({ limit: 9, owner: ME })],
    ])
    for (const list of lists)
      expect(list.map(({ key, untrusted }) => [key, untrusted]).toSorted()).toEqual([
        ['own', false],
        ['page', true],
      ])
    await memory.put(entry('page', 'written by the person'))
    expect((await memory.get(ME, 'page'))?.untrusted).toBe(false)
    await memory.put({ ...entry('page', 'read again'), untrusted: true })
    await memory.assign({ from: ME, to: OTHER, key: 'page' })
    expect((await memory.get(OTHER, 'page'))?.untrusted).toBe(true)
  },

  'each way to read an entry returns the whole of it': async ({ store: { memory } }) => {
    const whole = { owner: ME, key: 'colour', content: 'dark green', category: 'daily', untrusted: true, updatedAtMs: 7 }
    await memory.put({ ...entry('colour', 'dark green', 7), category: 'daily', untrusted: true })
    const lists = await Promise.all([
      ...[memory.search(ME, '', 9), memory.search(ME, 'green', 9), memory.similar(ME, 'green', 9), memory.list({ limit: 9 })],
      ...[memory.list({ limit: 9, owner: ME }), memory.list({ limit: 9, after: { owner: ME, key: 'a' } })],
    ])
    for (const list of lists) expect(list).toEqual([whole])
    expect(await memory.get(ME, 'colour')).toEqual(whole)
  },

  'assigns entries to their own owner without a change': async ({ store: { memory } }) => {
    await memory.put(entry('colour', 'green'))
    expect(await memory.assign({ from: ME, to: ME })).toBe(0)
    expect(await memory.count(ME)).toBe(1)
  },

  'finds similar entries among many in every script, by words and parts of words': async ({ store: { memory } }) => {
    const texts: readonly (readonly [content: string, question: string])[] = [
      ['犬の名前はポチです', 'うちの犬は何歳ですか？'],
      ['好きな飲み物はコーヒーです', 'コーヒーを注文して'],
      ['我最喜欢的颜色是绿色', '买一件绿色的衬衫'],
      ['Geburtstag von Ada: 3. Mai', 'Was wäre ein Geburtstagsgeschenk für sie?'],
      ['Das Hochzeitsgeschenk liegt im Schrank', 'Wann war die Hochzeit?'],
      ['แมวของฉันชื่อมะลิ', 'แมวหิวแล้ว'],
      ['يحب القهوة السوداء', 'هل قَهْوَة جاهزة؟'],
      ['제 고양이 이름은 나비입니다', '고양이 밥 줘'],
      ['Любимый город Тверь', 'погода в городе'],
      ['Favourite dessert: crème brûlée', 'a recipe for CREME BRULEE'],
    ]
    for (const [at, [content]] of texts.entries()) await memory.put(entry(`k${at}`, content, at))
    await Promise.all(Array.from({ length: 300 }, (_, at) => memory.put(entry(`n${at}`, `note ${at}: call number ${at * 7}`, 1000 + at))))
    for (const [content, question] of texts) {
      const found = (await memory.similar(ME, question, 5)).map((one) => one.content)
      expect(found, question).toContain(content)
      expect(await memory.similar(OTHER, question, 5), question).toEqual([])
    }
    expect(await memory.similar(ME, 'note', 5)).toHaveLength(5)
    for (const text of ['', '?!', '👍', '"', 'x'.repeat(100_000)]) expect(await memory.similar(ME, text, 5)).toEqual([])
  },

  'lists the best match first': async ({ store: { memory } }) => {
    await memory.put(entry('a', 'the garden has a tree and a bench and a gate and a long path'))
    await memory.put(entry('b', 'the tree in the garden'))
    await memory.put(entry('c', 'the kitchen'))
    expect((await memory.search(ME, 'tree garden', 10)).map(({ key }) => key)).toEqual(['b', 'a'])
    expect((await memory.search(ME, 'tree garden', 1)).map(({ key }) => key)).toEqual(['b'])
  },

  'an empty query lists the newest entries': async ({ store: { memory } }) => {
    for (const [at, key] of ['a', 'b', 'c'].entries()) await memory.put(entry(key, 'x', at))
    await memory.put(entry('a', 'y', 9))
    for (const query of ['', '  \n']) expect((await memory.search(ME, query, 2)).map(({ key }) => key)).toEqual(['a', 'c'])
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
      expect((await memory.get(ME, `k${at}`))?.content).toBe(text.toWellFormed())
      await memory.search(ME, text, 5)
    }
    expect((await memory.search(ME, '"dog', 5)).length).toBe(0)
  },

  "an owner cannot find, read, replace or delete another's entry": async ({ store: { memory } }) => {
    await memory.put(entry('colour', 'green', 1))
    expect(await memory.search(OTHER, 'green', 10)).toEqual([])
    expect(await memory.search(OTHER, '', 10)).toEqual([])
    expect(await memory.get(OTHER, 'colour')).toBeUndefined()
    expect(await memory.delete(OTHER, 'colour')).toBe(false)
    await memory.put({ ...entry('colour', 'red', 2), owner: OTHER })
    expect((await memory.get(ME, 'colour'))?.content).toBe('green')
    expect((await memory.search(ME, 'colour', 10)).map(({ content }) => content)).toEqual(['green'])
    expect((await memory.search(OTHER, 'colour', 10)).map(({ content }) => content)).toEqual(['red'])
  },

  'every owner finds shared and unowned entries without a same-key entry': async ({ store: { memory } }) => {
    await memory.put({ ...entry('house_rule', 'shoes off', 1), owner: SHARED_MEMORIES })
    await memory.put({ ...entry('old_note', 'from before', 2), owner: UNOWNED_MEMORIES })
    const found = async (reader: string, query: string) =>
      (await memory.search(reader, query, 10)).map(({ owner, content }) => `${owner}: ${content}`)
    expect(await found(ME, '')).toEqual([': from before', '*: shoes off'])
    expect(await found(OTHER, 'shoes')).toEqual(['*: shoes off'])
    await memory.put(entry('house_rule', 'shoes on', 3))
    expect(await found(ME, 'shoes')).toEqual([`${ME}: shoes on`])
    expect(await found(OTHER, 'shoes')).toEqual(['*: shoes off'])
  },

  'lists all entries in pages, counts them by owner and assigns them': async ({ store: { memory } }) => {
    for (const key of ['a', 'b', 'c']) await memory.put({ ...entry(key, `unowned ${key}`), owner: UNOWNED_MEMORIES })
    await memory.put(entry('a', 'mine'))
    const names = (entries: Awaited<ReturnType<typeof memory.list>>) => entries.map(({ owner, key }) => `${owner}/${key}`)
    const first = await memory.list({ limit: 2 })
    expect(names(first)).toEqual(['/a', '/b'])
    expect(names(await memory.list({ limit: 10, after: first[1] ?? expect.fail() }))).toEqual(['/c', `${ME}/a`])
    expect(names(await memory.list({ limit: 10, owner: UNOWNED_MEMORIES, after: first[0] ?? expect.fail() }))).toEqual(['/b', '/c'])
    expect(await memory.owners({ limit: 10 })).toEqual([
      { owner: UNOWNED_MEMORIES, count: 3 },
      { owner: ME, count: 1 },
    ])
    expect(await memory.owners({ limit: 1 })).toEqual([{ owner: UNOWNED_MEMORIES, count: 3 }])
    expect(await memory.owners({ limit: 1, after: UNOWNED_MEMORIES })).toEqual([{ owner: ME, count: 1 }])
    expect(await Promise.all([UNOWNED_MEMORIES, ME, 'nobody'].map((owner) => memory.count(owner)))).toEqual([3, 1, 0])
    expect(await memory.assign({ from: UNOWNED_MEMORIES, to: SHARED_MEMORIES, key: 'c' })).toBe(1)
    expect(await memory.assign({ from: UNOWNED_MEMORIES, to: ME }), 'a key in use is not overwritten').toBe(1)
    expect(names(await memory.list({ limit: 10 }))).toEqual(['/a', '*/c', `${ME}/a`, `${ME}/b`])
    await memory.put(entry('a', 'mine again'))
    await memory.delete(UNOWNED_MEMORIES, 'a')
    await memory.delete(UNOWNED_MEMORIES, 'a')
    expect(await memory.owners({ limit: 10 }), 'counts follow every change').toEqual([
      { owner: SHARED_MEMORIES, count: 1 },
      { owner: ME, count: 2 },
    ])
    expect((await memory.search(ME, 'mine unowned', 10)).map(({ content }) => content).toSorted()).toEqual([
      'mine again',
      'unowned b',
      'unowned c',
    ])
  },
}
