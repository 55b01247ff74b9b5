import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { beforeEach, expect, test } from 'vitest'
import { EventCursor } from './event-cursor.ts'

const GAP = { sinceMs: 70_000, why: 'this version of signal-cli does not repeat what it wrote to a broken connection' }

let keyValue: ReturnType<typeof memoryKeyValue>
let cursor: EventCursor
const restart = async (): Promise<EventCursor> => {
  const next = new EventCursor(keyValue)
  await next.load()
  return next
}
beforeEach(async () => {
  keyValue = memoryKeyValue()
  cursor = await restart()
})

test('the first connection of all asks for no earlier event', async () => {
  expect(cursor.lastId).toBeUndefined()
})

test('a process that was killed before its first event asks for all that signal-cli keeps', async () => {
  await cursor.connected()
  expect((await restart()).lastId).toBe('none')
})

test('the last durable event is kept across restarts', async () => {
  await cursor.connected()
  cursor.took('1767225600000-7', 0)
  await cursor.flush()
  const next = await restart()
  expect(next.lastId).toBe('1767225600000-7')
  expect(await next.connected()).toBeUndefined()
})

test.each(['a\r\nb', 'ü', 'x'.repeat(201), ''])('an id that no header can carry counts as none: %j', async (id) => {
  await cursor.connected()
  cursor.took(id, 0)
  expect(cursor.lastId).toBe('none')
})

test('events without ids make a broken connection a gap since the last sign of life', async () => {
  await cursor.connected()
  cursor.took(undefined, 10_000)
  cursor.heard(70_000)
  await cursor.flush()
  expect(await cursor.connected()).toEqual(GAP)
  expect(await cursor.connected()).toBeUndefined()
  expect(await (await restart()).connected()).toEqual(GAP)
})

test('an orderly end is not a gap', async () => {
  await cursor.connected()
  cursor.took(undefined, 70_000)
  await cursor.flush()
  cursor.left()
  await cursor.flush()
  expect(await (await restart()).connected()).toBeUndefined()
})

test('the time of the last sign of life is stored once a minute', async () => {
  await cursor.connected()
  cursor.took(undefined, 100_000)
  await cursor.flush()
  cursor.heard(159_999)
  await cursor.flush()
  expect(await (await restart()).connected()).toMatchObject({ sinceMs: 100_000 })
  cursor.heard(160_000)
  await cursor.flush()
  expect(await (await restart()).connected()).toMatchObject({ sinceMs: 160_000 })
})

test.each([null, 7, { id: 7, aliveAtMs: 'x' }])('a stored value that is not valid counts as none: %j', async (stored) => {
  await keyValue.set('event', stored)
  const next = await restart()
  expect(next.lastId).toBeUndefined()
  expect(await next.connected()).toBeUndefined()
})
