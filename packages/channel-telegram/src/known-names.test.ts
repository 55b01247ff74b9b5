import { type TestHost, testHost } from '@sluice/testkit/host'
import { beforeEach, describe, expect, test } from 'vitest'
import { KnownNames } from './known-names.ts'

let host: TestHost
beforeEach(() => {
  host = testHost()
})
const namesOf = async (...allow: string[]) => {
  const names = new KnownNames(host, allow)
  await names.load()
  return names
}

describe('KnownNames', () => {
  test('allows only the first account that uses a name', async () => {
    const names = await namesOf('@Ada', 'bob', '5005')
    expect(names.matches('ada', '1001')).toBe(false)
    await names.learn('1001', 'ADA')
    await names.learn('666', 'ada')
    expect([names.matches('@Ada', '1001'), names.matches('@Ada', '666'), names.matches('bob', '1001')]).toEqual([true, false, false])
  })

  test('binds a name to one account when two processes learn it at once', async () => {
    const processes = [await namesOf('ada'), await namesOf('ada')]
    await Promise.all(processes.map((names, at) => names.learn(at === 0 ? '1001' : '666', 'ada')))
    const allowed = processes.map((names) => ['1001', '666'].filter((id) => names.matches('ada', id)))
    expect(allowed[0]).toHaveLength(1)
    expect(allowed[1]).toEqual(allowed[0])
  })

  test('treats numbers, * and empty entries as no names', async () => {
    const names = await namesOf('5005', '*', '')
    for (const name of ['5005', '*', '']) {
      await names.learn('666', name)
      expect(names.matches(name, '666')).toBe(false)
    }
    expect(await host.keyValue.list('', 10)).toEqual([])
  })

  test('keeps a binding across restarts until the name leaves the list', async () => {
    await (await namesOf('ada')).learn('1001', 'ada')
    expect((await namesOf('ada')).matches('ada', '1001')).toBe(true)
    await namesOf('bob')
    const again = await namesOf('ada')
    expect(again.matches('ada', '1001')).toBe(false)
    await again.learn('1002', 'ada')
    expect(again.matches('ada', '1002')).toBe(true)
  })

  test('stores only names on the list', async () => {
    const names = await namesOf('ada')
    await names.learn('1002', 'Ada')
    for (let id = 0; id < 100; id++) await names.learn(String(id), `stranger${id}`)
    expect(await host.keyValue.list('', 1000)).toEqual([{ key: 'name:ada', value: '1002' }])
  })
})
