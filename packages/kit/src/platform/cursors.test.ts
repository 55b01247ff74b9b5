import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { Cursors, type CursorsOptions, type Position } from './cursors.ts'
import { members } from './foreign-json.ts'

interface Kept extends Position {
  readonly guild?: string
}

const create = (options: Partial<CursorsOptions<Kept>> = {}) =>
  new Cursors<Kept>({
    keyValue: memoryKeyValue(),
    key: 'cursors',
    groups: [{ max: 5, has: () => true }],
    read(_scope, stored) {
      const { after, guild } = members(stored)
      return typeof after === 'string' ? { after, ...(typeof guild === 'string' && { guild }) } : undefined
    },
    ...options,
  })
const positions = (cursors: Cursors<Kept>) => Object.fromEntries(cursors.entries().map(([scope, { after }]) => [scope, after]))

describe('Cursors', () => {
  test('survive a restart, and skip malformed entries', async () => {
    const keyValue = memoryKeyValue()
    const before = create({ keyValue })
    await before.load()
    before.follow('a', { after: '10', guild: '3' })
    before.advance('a', '15')
    await before.flush()
    await keyValue.set('cursors', { ...members(await keyValue.get('cursors')), b: 'x', c: { after: 7 } })
    const after = create({ keyValue })
    await after.load()
    expect(after.entries()).toEqual([['a', { after: '15', guild: '3' }]])
  })

  test('read what an earlier release stored', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('cursors', { channels: { a: '1' } })
    const cursors = create({
      keyValue,
      entriesOf: (stored) => Object.entries(members(members(stored).channels)).map(([scope, after]) => [scope, { after }]),
    })
    await cursors.load()
    expect(positions(cursors)).toEqual({ a: '1' })
  })

  test('never move back, and start once', () => {
    const cursors = create()
    cursors.follow('a', { after: '10' })
    cursors.advance('a', '12')
    cursors.advance('a', '11')
    cursors.follow('a', { after: '1' })
    cursors.advance('b', '9')
    expect(positions(cursors)).toEqual({ a: '12' })
  })

  test('compare numbers of any length', () => {
    const cursors = create()
    cursors.follow('a', { after: '999999999999999999' })
    cursors.advance('a', '1000000000000000000')
    expect(cursors.get('a')?.after).toBe('1000000000000000000')
  })

  test('gain members that they did not have', () => {
    const cursors = create()
    cursors.follow('a', { after: '10' })
    cursors.follow('a', { after: '20', guild: '3' })
    cursors.follow('a', { after: '30', guild: '4' })
    expect(cursors.get('a')).toEqual({ after: '10', guild: '3' })
  })

  test('forget the oldest position of a full group, but none that is pinned', () => {
    const isThread = (scope: string) => scope.startsWith('t')
    const cursors = create({
      groups: [
        { max: 2, has: isThread },
        { max: 3, has: () => true },
      ],
      isPinned: (scope) => scope === 'a',
    })
    for (const [scope, after] of Object.entries({ a: '1', b: '2', c: '3', d: '4', t1: '1', t2: '2', t3: '3' }))
      cursors.follow(scope, { after })
    expect(positions(cursors)).toEqual({ a: '1', c: '3', d: '4', t2: '2', t3: '3' })
  })

  test('stay where they are until every hold is released', () => {
    const cursors = create()
    cursors.follow('a', { after: '1' })
    const [first, second] = [cursors.hold(), cursors.hold()]
    cursors.advance('a', '9')
    cursors.advance('a', '8')
    first()
    first()
    expect(positions(cursors)).toEqual({ a: '1' })
    second()
    expect(positions(cursors)).toEqual({ a: '9' })
  })

  test('are not stored before the stored ones are loaded', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('cursors', { a: { after: '1' } })
    const cursors = create({ keyValue })
    cursors.follow('b', { after: '2' })
    await cursors.flush()
    expect(await keyValue.get('cursors')).toEqual({ a: { after: '1' } })
    await cursors.load()
    await cursors.flush()
    expect(await keyValue.get('cursors')).toEqual({ a: { after: '1' }, b: { after: '2' } })
  })

  test('are stored only after a change, and again after a failed write', async () => {
    const kept = memoryKeyValue()
    let writes = 0
    let isFull = false
    const set = async (key: string, value: unknown) => {
      writes += 1
      if (isFull) throw new Error('the disk is full')
      await kept.set(key, value)
    }
    const cursors = create({ keyValue: { ...kept, set } })
    await cursors.load()
    await cursors.flush()
    expect(writes).toBe(0)
    cursors.follow('a', { after: '10' })
    await cursors.flush()
    isFull = true
    cursors.advance('a', '11')
    await expect(cursors.flush()).rejects.toThrow('full')
    isFull = false
    await cursors.flush()
    await cursors.flush()
    expect(writes).toBe(3)
  })
})
