import { type TestHost, testHost } from '@sluice/testkit/host'
import { beforeEach, expect, test } from 'vitest'
import { createKnownNames } from './known-names.ts'

let host: TestHost
beforeEach(() => {
  host = testHost()
})
const namesOf = async (...allow: string[]) => {
  const names = createKnownNames(host, allow)
  await names.load()
  return names
}

test('§5 a name lets in nobody before it is used, and then its first user alone', async () => {
  const names = await namesOf('@Ada', 'bob', '5005')
  expect(names.matches('ada', '1001')).toBe(false)
  await names.learn('1001', 'ADA')
  await names.learn('666', 'ada')
  expect([names.matches('@Ada', '1001'), names.matches('@Ada', '666'), names.matches('bob', '1001')]).toEqual([true, false, false])
})

test('a number is never a name, and nobody without a name is known', async () => {
  const names = await namesOf('5005', '*', '')
  for (const name of ['5005', '*', '']) {
    await names.learn('666', name)
    expect(names.matches(name, '666')).toBe(false)
  }
  expect(await host.keyValue.list('', 10)).toEqual([])
})

test('what was learnt outlives the channel, until the name leaves the list', async () => {
  await (await namesOf('ada')).learn('1001', 'ada')
  expect((await namesOf('ada')).matches('ada', '1001')).toBe(true)
  await namesOf('bob')
  const again = await namesOf('ada')
  expect(again.matches('ada', '1001')).toBe(false)
  await again.learn('1002', 'ada')
  expect(again.matches('ada', '1002')).toBe(true)
})

test('only names on the list are kept, whoever writes', async () => {
  const names = await namesOf('ada')
  await names.learn('1002', 'Ada')
  for (let id = 0; id < 100; id++) await names.learn(String(id), `stranger${id}`)
  expect(await host.keyValue.list('', 1000)).toEqual([{ key: 'name:ada', value: '1002' }])
})
