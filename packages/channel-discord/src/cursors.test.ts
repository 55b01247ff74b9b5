import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { CURSORS_MAX, Cursors } from './cursors.ts'

describe('Cursors', () => {
  test('survives a restart and skips malformed entries', async () => {
    const keyValue = memoryKeyValue()
    const before = new Cursors(keyValue)
    before.followFrom('2', { id: '11', guild: '3' })
    before.advance('2', '15')
    before.follow('7', { after: '7', isOurs: true })
    await before.flush()
    const after = new Cursors(keyValue)
    await after.load()
    expect(after.get('2')).toEqual({ after: '15', guild: '3' })
    expect(after.get('7')).toEqual({ after: '7', isOurs: true })

    await keyValue.set('cursors', { 2: 'x', 3: { after: '../..' }, '../..': { after: '1' }, 4: { after: '1', guild: 5, isOurs: 'yes' } })
    const odd = new Cursors(keyValue)
    await odd.load()
    expect(odd.channels()).toEqual(['4'])
    expect(odd.get('4')).toEqual({ after: '1' })
  })

  test('starts before the first message that arrived, and never moves back', () => {
    const cursors = new Cursors(memoryKeyValue())
    cursors.followFrom('2', { id: '11', guild: '' })
    expect(cursors.get('2')?.after).toBe('10')
    cursors.advance('2', '12')
    cursors.advance('2', '11')
    cursors.followFrom('2', { id: '14', guild: '' })
    expect(cursors.get('2')?.after).toBe('12')
  })

  test('compares ids as numbers of any length', () => {
    const cursors = new Cursors(memoryKeyValue())
    cursors.follow('2', { after: '999999999999999999' })
    cursors.advance('2', '1000000000000000000')
    expect(cursors.get('2')?.after).toBe('1000000000000000000')
  })

  test('adds unknown members to a cursor and keeps known ones', () => {
    const cursors = new Cursors(memoryKeyValue())
    cursors.follow('2', { after: '10' })
    cursors.follow('2', { after: '20', guild: '3', isOurs: true })
    cursors.follow('2', { after: '30', guild: '4' })
    expect(cursors.get('2')).toEqual({ after: '10', guild: '3', isOurs: true })
  })

  test(`follows at most ${CURSORS_MAX} conversations, the pinned one always among them`, () => {
    const cursors = new Cursors(memoryKeyValue(), '1')
    for (let channel = 1; channel <= CURSORS_MAX; channel++) cursors.follow(String(channel), { after: String(channel) })
    cursors.advance('2', '9999')
    cursors.follow('9000', { after: '9000' })
    expect(cursors.channels()).toHaveLength(CURSORS_MAX)
    expect(['1', '2', '3', '9000'].map((channel) => cursors.get(channel) !== undefined)).toEqual([true, true, false, true])
  })

  test('writes only after a change, and repeats a failed write', async () => {
    const kept = memoryKeyValue()
    let writes = 0
    let isFull = false
    const cursors = new Cursors({
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
})
