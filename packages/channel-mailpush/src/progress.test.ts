import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { type Cursor, readCursor, saveCursor } from './cursor.ts'
import { Progress } from './progress.ts'

const START_MS = Date.UTC(2026, 0, 1)
const CURSOR: Cursor = { historyId: 10n, atMs: START_MS, setUpAtMs: START_MS, handedOver: [] }

const arrange = (cursor = CURSOR) => {
  const saved: Cursor[] = []
  return { saved, progress: new Progress(cursor, async (next) => void saved.push(next)) }
}

describe('Progress', () => {
  test('keeps delivered mails that a listing from the cursor could repeat', async () => {
    const { saved, progress } = arrange()
    progress.markDelivered('old', START_MS)
    progress.markDelivered('new', START_MS + 100_000)
    await progress.moveTo(11n, START_MS + 301_000)
    expect(saved).toEqual([{ ...CURSOR, historyId: 11n, atMs: START_MS + 301_000, handedOver: [['new', START_MS + 100_000]] }])
    expect([progress.isDelivered('old'), progress.isDelivered('new')]).toEqual([false, true])
  })

  test('keeps at most 1000 delivered mails and forgets the oldest', async () => {
    const { saved, progress } = arrange()
    for (let count = 0; count < 1001; count++) progress.markDelivered(`m${count}`, START_MS)
    expect([progress.isDelivered('m0'), progress.isDelivered('m1'), progress.isDelivered('m1000')]).toEqual([false, true, true])
    await progress.save()
    expect(saved[0]?.handedOver).toHaveLength(1000)
  })

  test('saves new delivered mails without moving the cursor', async () => {
    const { saved, progress } = arrange()
    await progress.save()
    progress.markDelivered('m1', START_MS)
    await progress.save()
    await progress.save()
    expect(saved).toEqual([{ ...CURSOR, handedOver: [['m1', START_MS]] }])
  })

  test('keeps delivered mails and the old cursor when a save fails', async () => {
    const progress = new Progress(CURSOR, async () => {
      throw new Error('the disk is full')
    })
    progress.markDelivered('m1', START_MS - 1_000_000)
    await expect(progress.moveTo(11n, START_MS)).rejects.toThrow('the disk is full')
    expect(progress.isDelivered('m1')).toBe(true)
    expect(progress.cursor.historyId).toBe(10n)
  })
})

test('readCursor returns the saved cursor, also one without delivered mails', async () => {
  const keyValue = memoryKeyValue()
  const cursor: Cursor = { ...CURSOR, historyId: 2n ** 63n, handedOver: [['m1', START_MS]] }
  await saveCursor(keyValue, 'a@b.c', cursor)
  expect(await readCursor(keyValue, 'a@b.c')).toEqual(cursor)
  await keyValue.set('cursor/a@b.c', { historyId: '7', atMs: START_MS })
  expect(await readCursor(keyValue, 'a@b.c')).toEqual({ historyId: 7n, atMs: START_MS, setUpAtMs: 0, handedOver: [] })
  expect(await readCursor(keyValue, 'else')).toBeUndefined()
})
