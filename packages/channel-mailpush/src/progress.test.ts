import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { type Cursor, keepCursor, readCursor } from './cursor.ts'
import { createProgress } from './progress.ts'

const START_MS = Date.UTC(2026, 0, 1)
const CURSOR: Cursor = { historyId: 10n, atMs: START_MS, setUpAtMs: START_MS, handedOver: [] }

const arrange = (cursor = CURSOR) => {
  const kept: Cursor[] = []
  return { kept, progress: createProgress(cursor, async (next) => void kept.push(next)) }
}

describe('the mails that were handed over', () => {
  test('are kept as long as a listing from the cursor on could have them', async () => {
    const { kept, progress } = arrange()
    progress.note('old', START_MS)
    progress.note('new', START_MS + 100_000)
    await progress.moveTo(11n, START_MS + 301_000)
    expect(kept).toEqual([{ ...CURSOR, historyId: 11n, atMs: START_MS + 301_000, handedOver: [['new', START_MS + 100_000]] }])
    expect([progress.knows('old'), progress.knows('new')]).toEqual([false, true])
  })

  test('are at most a thousand, of which the first is forgotten first', async () => {
    const { kept, progress } = arrange()
    for (let count = 0; count < 1001; count++) progress.note(`m${count}`, START_MS)
    expect([progress.knows('m0'), progress.knows('m1'), progress.knows('m1000')]).toEqual([false, true, true])
    await progress.save()
    expect(kept[0]?.handedOver).toHaveLength(1000)
  })

  test('are saved without moving the cursor, and only where there are new ones', async () => {
    const { kept, progress } = arrange()
    await progress.save()
    progress.note('m1', START_MS)
    await progress.save()
    await progress.save()
    expect(kept).toEqual([{ ...CURSOR, handedOver: [['m1', START_MS]] }])
  })

  test('are known though the cursor could not be kept, which stays where it was', async () => {
    const progress = createProgress(CURSOR, async () => {
      throw new Error('the disk is full')
    })
    progress.note('m1', START_MS - 1_000_000)
    await expect(progress.moveTo(11n, START_MS)).rejects.toThrow('the disk is full')
    expect(progress.knows('m1')).toBe(true)
    expect(progress.cursor().historyId).toBe(10n)
  })
})

test('a cursor is read as it was kept, and one that was kept without its mails, too', async () => {
  const keyValue = memoryKeyValue()
  const cursor: Cursor = { ...CURSOR, historyId: 2n ** 63n, handedOver: [['m1', START_MS]] }
  await keepCursor(keyValue, 'a@b.c', cursor)
  expect(await readCursor(keyValue, 'a@b.c')).toEqual(cursor)
  await keyValue.set('cursor/a@b.c', { historyId: '7', atMs: START_MS })
  expect(await readCursor(keyValue, 'a@b.c')).toEqual({ historyId: 7n, atMs: START_MS, setUpAtMs: 0, handedOver: [] })
  expect(await readCursor(keyValue, 'else')).toBeUndefined()
})
