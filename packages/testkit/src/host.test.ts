import { expect, test } from 'vitest'
import { testHost, throwingHost } from './host.ts'

test('the test host records logs and events', () => {
  const host = testHost()
  host.log.warn('careful', { count: 1 })
  host.events.emit({ type: 'x_test' })
  expect(host.logs).toEqual([{ level: 'warn', message: 'careful', fields: { count: 1 } }])
  expect(host.emitted).toEqual([{ type: 'x_test' }])
})

test('the test host rejects calls to members it was not given', async () => {
  const host = testHost()
  await expect(host.fetch('http://127.0.0.1/')).rejects.toThrow('no fetch')
  await expect(host.publicFetch('http://127.0.0.1/', { signal: new AbortController().signal })).rejects.toThrow('no publicFetch')
  expect(host.service('memory')).toBeUndefined()
})

test('the test host keeps keys, secrets and files in memory', async () => {
  const host = testHost()
  await host.keyValue.set('b', { n: 1 })
  await host.keyValue.set('a', 2)
  expect(await host.keyValue.list('', 1)).toEqual([{ key: 'a', value: 2 }])
  await host.secrets.set('token', 'x')
  expect(await host.secrets.get('token')).toBe('x')
  await host.by.workspace.write('notes/a.txt', new TextEncoder().encode('hi'))
  expect(new TextDecoder().decode(await host.by.workspace.read('/workspace/notes/a.txt', { bytesMax: 10 }))).toBe('hi')
  expect((await host.by.workspace.list('.', { limit: 10 })).entries).toMatchObject([{ name: 'notes', kind: 'folder' }])
})

test('the in-memory workspace refuses what the contract refuses', async () => {
  const { workspace } = testHost().by
  await expect(workspace.read('../etc/passwd', { bytesMax: 10 })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(workspace.read('/etc/passwd', { bytesMax: 10 })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(workspace.read('none', { bytesMax: 10 })).rejects.toMatchObject({ code: 'not_found' })
  await workspace.write('big', new Uint8Array(11))
  await expect(workspace.read('big', { bytesMax: 10 })).rejects.toMatchObject({ code: 'too_large' })
})

test('the throwing host allows keeping members but throws on every call', () => {
  const host = throwingHost()
  const { log, fetch } = host
  expect(host.workspaces).toEqual(['/workspace'])
  expect(() => log.info('hello')).toThrow('host.log.info()')
  expect(() => fetch('http://127.0.0.1/')).toThrow('host.fetch()')
  expect(() => host.clock.nowMs()).toThrow('host.clock.nowMs()')
  expect(() => host.keyValue.get('x')).toThrow('host.keyValue.get()')
  expect(() => host.service('memory')).toThrow('host.service()')
})
