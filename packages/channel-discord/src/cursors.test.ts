import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { CURSORS_MAX, createCursors } from './cursors.ts'

test('what was kept is there after a restart, and what an earlier version or somebody else wrote does no harm', async () => {
  const keyValue = memoryKeyValue()
  const before = createCursors(keyValue)
  before.saw('2', { id: '11', guild: '3' })
  before.advance('2', '15')
  before.follow('7', { after: '7', isOurs: true })
  await before.flush()
  const after = createCursors(keyValue)
  await after.load()
  expect(after.get('2')).toEqual({ after: '15', guild: '3' })
  expect(after.get('7')).toEqual({ after: '7', isOurs: true })

  await keyValue.set('cursors', { 2: 'x', 3: { after: '../..' }, '../..': { after: '1' }, 4: { after: '1', guild: 5, isOurs: 'yes' } })
  const odd = createCursors(keyValue)
  await odd.load()
  expect(odd.channels()).toEqual(['4'])
  expect(odd.get('4')).toEqual({ after: '1' })
})

test('a cursor stands before the first message that was seen, and never goes back', () => {
  const cursors = createCursors(memoryKeyValue())
  cursors.saw('2', { id: '11', guild: '' })
  expect(cursors.get('2')?.after).toBe('10')
  cursors.advance('2', '12')
  cursors.advance('2', '11')
  cursors.saw('2', { id: '14', guild: '' })
  expect(cursors.get('2')?.after).toBe('12')
})

test('ids are compared as numbers, however long', () => {
  const cursors = createCursors(memoryKeyValue())
  cursors.follow('2', { after: '999999999999999999' })
  cursors.advance('2', '1000000000000000000')
  expect(cursors.get('2')?.after).toBe('1000000000000000000')
})

test('what is not known is learnt, and what is known stays', () => {
  const cursors = createCursors(memoryKeyValue())
  cursors.follow('2', { after: '10' })
  cursors.follow('2', { after: '20', guild: '3', isOurs: true })
  cursors.follow('2', { after: '30', guild: '4' })
  expect(cursors.get('2')).toEqual({ after: '10', guild: '3', isOurs: true })
})

test(`at most ${CURSORS_MAX} conversations are followed: the one longest silent is forgotten, but never the pinned one`, () => {
  const cursors = createCursors(memoryKeyValue(), '1')
  for (let channel = 1; channel <= CURSORS_MAX; channel++) cursors.follow(String(channel), { after: String(channel) })
  cursors.advance('2', '9999')
  cursors.follow('9000', { after: '9000' })
  expect(cursors.channels()).toHaveLength(CURSORS_MAX)
  expect(['1', '2', '3', '9000'].map((channel) => cursors.get(channel) !== undefined)).toEqual([true, true, false, true])
})

test('nothing is written when nothing changed, and a write that failed is made up for', async () => {
  const kept = memoryKeyValue()
  let writes = 0
  let isFull = false
  const cursors = createCursors({
    ...kept,
    set: async (key, value) => {
      writes += 1
      if (isFull) throw new Error('the disk is full')
      await kept.set(key, value)
    },
  })
  await cursors.flush()
  expect(writes).toBe(0)
  cursors.follow('2', { after: '10' })
  isFull = true
  await expect(cursors.flush()).rejects.toThrow('full')
  isFull = false
  await cursors.flush()
  await cursors.flush()
  expect(writes).toBe(2)
})
