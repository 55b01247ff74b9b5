import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { Seen } from './seen.ts'

const DAY = 86_400
const idOf = (number: number): string => number.toString(16).padStart(64, '0').split('').reverse().join('')

test('knows ids over restarts, and forgets the ids of earlier days', async () => {
  const keyValue = memoryKeyValue()
  const first = new Seen(keyValue)
  await first.load()
  first.add(idOf(1), 10 * DAY)
  first.add(idOf(2), 11 * DAY + 5)
  await first.flush()
  const second = new Seen(keyValue)
  await second.load()
  expect([second.has(idOf(1), 10 * DAY + 7), second.has(idOf(2), 11 * DAY), second.has(idOf(3), 11 * DAY)]).toEqual([true, true, false])
  second.forgetBefore(11 * DAY)
  await second.flush()
  expect([second.has(idOf(1), 10 * DAY), second.has(idOf(2), 11 * DAY)]).toEqual([false, true])
  expect((await keyValue.list('seen/', 10)).map(({ key }) => key)).toEqual(['seen/11'])
})

test('keeps the newest 5,000 ids of a day', async () => {
  const keyValue = memoryKeyValue()
  const seen = new Seen(keyValue)
  await seen.load()
  for (let number = 0; number < 6000; number += 1) seen.add(idOf(number), DAY)
  await seen.flush()
  expect([seen.has(idOf(999), DAY), seen.has(idOf(1000), DAY), seen.has(idOf(5999), DAY)]).toEqual([false, true, true])
  const [{ value } = {}] = await keyValue.list('seen/', 1)
  expect((value as { ids: string }).ids.split(' ')).toHaveLength(5000)
})

test('writes again what could not be written', async () => {
  const keyValue = memoryKeyValue()
  let isFull = true
  const seen = new Seen({ ...keyValue, set: async (...args) => (isFull ? Promise.reject(new Error('full')) : keyValue.set(...args)) })
  await seen.load()
  seen.add(idOf(1), DAY)
  await expect(seen.flush()).rejects.toThrow('full')
  isFull = false
  await seen.flush()
  expect(await keyValue.list('seen/', 10)).toHaveLength(1)
})
