/** Commands on a data directory with a daemon, without one, and after a crash of one. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { Api } from './api.ts'
import { parseUrl } from './open-api.ts'
import { readPages } from './pages.ts'
import { connectHttp, noAnswer } from './transport.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

function arrange() {
  const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
  cleanups.push(dispose)
  const run = sluiceWith([OFFLINE], undefined, { ...process.env } as Record<string, string>)
  const sluice = (...argv: string[]) => run(...argv, '--data-dir', dir)
  const start = async () => {
    const configFile = join(dir, 'config.toml')
    const daemon = await startDaemon({ features: [OFFLINE], dataDir: dir, configFile, env: {}, profile: 'test', version: '0', port: 0 })
    cleanups.push(daemon.stop)
    return daemon
  }
  return { dir, sluice, start }
}

describe('a command', () => {
  test('gives the same answer with a daemon and without one', async () => {
    const { sluice, start } = arrange()
    expect(await sluice('pair', 'token', '--name', 'phone', '--role', 'client')).toMatchObject({ code: 0 })
    const alone = await sluice('pair', 'list', '--json')
    const daemon = await start()
    expect(await sluice('pair', 'list', '--json')).toEqual(alone)
    expect(JSON.parse((await sluice('status', '--json')).out)).toMatchObject({ running: true, url: daemon.url, pid: process.pid })
  })

  test('asks the daemon at --url with a token that is not an argument', async () => {
    const { dir, sluice, start } = arrange()
    const { url } = await start()
    const token = (await sluice('pair', 'token')).out
    writeFileSync(join(dir, 'token'), token)
    const remote = ['--url', url, '--token-file', join(dir, 'token')]
    expect(JSON.parse((await sluice('pair', 'list', '--json', ...remote)).out)).toMatchObject([{ name: 'command line' }])
    expect(await sluice('pair', 'list', '--url', url)).toMatchObject({ code: 1, err: expect.stringContaining('Unauthorized') })
  })

  test('is not confused by a socket that a crash left behind', async () => {
    const { dir, sluice, start } = arrange()
    writeFileSync(join(dir, 'control.sock'), '')
    expect(await sluice('memory', 'list')).toMatchObject({ code: 0, out: 'no memories\n' })
    await start()
    expect(await sluice('status')).toMatchObject({ code: 0, out: expect.stringContaining('running on') })
  })
})

test('a list is read page by page up to its limit', async () => {
  const all = Array.from({ length: 7 }, (_, index) => index)
  const asked: number[] = []
  const read = async (limit: number, cursor = 0) => {
    asked.push(limit)
    const end = cursor + limit
    return { items: all.slice(cursor, end), next: end < all.length ? end : null }
  }
  expect(await readPages(5, 3, read)).toEqual({ items: [0, 1, 2, 3, 4], next: 5 })
  expect(asked).toEqual([3, 2])
  expect(await readPages(Number.POSITIVE_INFINITY, 3, read)).toEqual({ items: all, next: null })
})

test('a list stops where nothing has been found for ten seconds, and says where it goes on', async () => {
  let ms = 0
  const read = async (_limit: number, cursor = 0) => {
    ms += 3_000
    return { items: cursor === 2 ? [cursor] : [], next: cursor + 1 }
  }
  expect(await readPages(Number.POSITIVE_INFINITY, 3, read, () => ms)).toEqual({ items: [2], next: 7 })
})

test('an action whose answer is lost is reported as one that may have been carried out', async () => {
  const server = createServer((request) => request.socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const explained = async (method: string, address: string): Promise<string> => {
    const { send, close } = await connectHttp({ url: parseUrl(address), token: undefined })
    cleanups.push(close)
    const api = new Api('url', { close, send: (request) => send(request).catch((cause) => Promise.reject(noAnswer('It', cause, method))) })
    return api.call(method, '/').then(String, ({ message }: Error) => message)
  }
  expect(await explained('POST', url)).toMatch(/may have been carried out/)
  expect(await explained('GET', url)).toMatch(/^It cannot be reached/)
  server.close()
  expect(await explained('POST', 'http://127.0.0.1:1')).toMatch(/^It cannot be reached/)
})
