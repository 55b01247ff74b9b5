import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../time/system-clock.ts'
import { FrameSocket } from './frame-socket.ts'
import { patientFetch } from './patient-fetch.ts'
import { proxyAgent, proxySettings } from './proxy.ts'

const PROXY = 'http://proxy.example:3128'
const DIRECT = 'localhost,127.0.0.1,[::1]'

describe('proxySettings', () => {
  test.each([
    [{}, undefined],
    [{ NO_PROXY: 'example.org' }, undefined],
    [{ HTTPS_PROXY: '', http_proxy: '' }, undefined],
    [{ HTTPS_PROXY: PROXY }, { HTTPS_PROXY: PROXY, NO_PROXY: DIRECT }],
    [
      { https_proxy: PROXY, HTTPS_PROXY: 'http://other.example' },
      { HTTPS_PROXY: PROXY, NO_PROXY: DIRECT },
    ],
    [
      { http_proxy: PROXY, no_proxy: '.corp.example' },
      { HTTP_PROXY: PROXY, NO_PROXY: `.corp.example,${DIRECT}` },
    ],
  ])('reads %j', (env, settings) => {
    expect(proxySettings(env)).toEqual(settings)
  })

  test.each(['proxy.example:3128', 'socks5://proxy.example', 'not a URL'])('refuses %s by the name of its variable', (value) => {
    expect(() => proxySettings({ HTTPS_PROXY: value })).toThrow('HTTPS_PROXY of the environment does not hold the URL of a proxy')
  })
})

describe('with a proxy in the environment', () => {
  afterEach(() => vi.unstubAllEnvs())

  /** A proxy that refuses every tunnel. */
  async function startProxy() {
    const seen: string[] = []
    const server = createServer()
    server.on('connect', (request, socket) => {
      seen.push(`CONNECT ${request.url}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY']) {
      vi.stubEnv(name, url)
      vi.stubEnv(name.toLowerCase(), '')
    }
    for (const name of ['NO_PROXY', 'no_proxy']) vi.stubEnv(name, '')
    return {
      seen,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      },
    }
  }

  test('a WebSocket asks the proxy for a tunnel', async () => {
    await using proxy = await startProxy()
    const { signal } = new AbortController()
    const options = { platform: 'Example', clock: systemClock, signal, onFrame: () => undefined }
    await expect(FrameSocket.open('wss://chat.example/socket', options)).rejects.toMatchObject({ code: 'unavailable' })
    expect(proxy.seen).toEqual(['CONNECT chat.example:443'])
  })

  test('a request without the time limit of Node goes through the proxy too, and one to this machine does not', async () => {
    await using proxy = await startProxy()
    await using own = await startOwn()
    const patient = patientFetch(fetch, 301)
    await expect(patient('http://models.example/v1')).rejects.toThrow('fetch failed')
    expect(await (await patient(own.url)).text()).toBe('from this machine')
    expect(proxy.seen).toEqual(['CONNECT models.example:80'])
  })

  async function startOwn() {
    const server = createServer((_, response) => void response.end('from this machine'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      },
    }
  }
})

test('no agent is made without a proxy, and a limit that Node keeps needs no other fetch', () => {
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) vi.stubEnv(name, '')
  expect(proxyAgent(new URL('https://example.org'))).toBeUndefined()
  expect(patientFetch(fetch, 300)).toBe(fetch)
  vi.unstubAllEnvs()
})
