import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, type PublicRequest } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { afterEach, describe, expect, test } from 'vitest'
import { createPublicAddresses, type PublicAddressesOptions } from './public-addresses.ts'
import { createPublicFetch } from './public-fetch.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Starts a server on a loopback address, and returns its port. */
const serve = async (listener: RequestListener, address = '127.0.0.1', port = 0, server: Server = createServer(listener)) => {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  return (server.address() as AddressInfo).port
}

const publicAddresses = (options: Partial<PublicAddressesOptions> = {}) =>
  createPublicAddresses({
    allowPrivate: ['site.test', 'other.test'],
    log: testHost().log,
    lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    ...options,
  })
const publicFetch =
  (options: Partial<PublicAddressesOptions> = {}) =>
  (url: string, init: Partial<PublicRequest> = {}) =>
    createPublicFetch(publicAddresses(options))(url, { signal: new AbortController().signal, ...init })
const neverLookedUp = async (): Promise<never> => {
  throw new Error('looked up')
}

/** The request that the server got, from the JSON that it answers. */
const echo: RequestListener = (request, response) => {
  let body = ''
  request.on('data', (chunk) => {
    body += chunk
  })
  request.on('end', () => response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body })))
}

describe('publicFetch', () => {
  test('sends the request as given, and returns the answer', async () => {
    const port = await serve((request, response) => {
      response.setHeader('x-kind', ['a', 'b'])
      echo(request, response)
    })
    const response = await publicFetch()(`http://site.test:${port}/path?q=1#part`, {
      method: 'post',
      headers: { 'Content-Type': 'text/plain', Host: 'evil.test', Connection: 'keep-alive', 'Content-Length': '3', 'X-Own': 'yes' },
      body: 'hello',
    })
    expect([response.status, response.headers.get('x-kind'), response.url]).toEqual([200, 'a, b', `http://site.test:${port}/path?q=1#part`])
    const { headers, ...seen } = (await response.json()) as { headers: Record<string, string> }
    expect(seen).toEqual({ method: 'POST', url: '/path?q=1', body: 'hello' })
    expect(headers).toEqual({
      host: `site.test:${port}`,
      connection: 'close',
      'content-length': '5',
      'content-type': 'text/plain',
      'x-own': 'yes',
      'accept-encoding': 'identity',
      'user-agent': 'Sluice',
    })
  })

  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://0/',
    'http://0.0.0.0/',
    'http://１２７.0.0.1/',
    'http://127。0。0。1/',
    'http://10.0.0.1/',
    'http://172.16.5.4/',
    'http://192.168.1.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://100.64.0.1/',
    'http://255.255.255.255/',
    'http://224.0.0.1/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:a9fe:a9fe]/',
    'http://[::127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[fe80::1]/',
    'http://[fd00::1]/',
    'http://[ff02::1]/',
    'https://[fec0::1]:8443/',
  ])('%s is not public', async (url) => {
    await expect(publicFetch({ lookup: neverLookedUp })(url)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test.each([
    ['ftp://site.test/', 'forbidden'],
    ['file:///etc/passwd', 'forbidden'],
    ['data:text/plain,hi', 'forbidden'],
    ['javascript:alert(1)', 'forbidden'],
    ['http://user@site.test/', 'forbidden'],
    ['http://user:pass@site.test/', 'forbidden'],
    ['http://:pass@site.test/', 'forbidden'],
    ['site.test', 'invalid_request'],
    ['', 'invalid_request'],
    ['http://', 'invalid_request'],
    ['http://999.1.1.1/', 'invalid_request'],
    ['http://a b/', 'invalid_request'],
    [`http://site.test/${'a'.repeat(9000)}`, 'invalid_request'],
  ])('%s is refused before anything is looked up', async (url, code) => {
    await expect(publicFetch({ lookup: neverLookedUp })(url)).rejects.toMatchObject({ code })
  })

  test('refuses a name with one private address among public ones', async () => {
    for (const inside of ['127.0.0.1', '10.1.2.3', '::1', '::ffff:10.0.0.1', 'fd00::1', 'not an address']) {
      const addresses = [
        { address: '93.184.215.14', family: 4 },
        { address: inside, family: inside.includes(':') ? 6 : 4 },
      ]
      const fetching = publicFetch({ lookup: async () => addresses })('http://mixed.test/')
      await expect(fetching).rejects.toMatchObject({ code: 'forbidden' })
    }
    await expect(publicFetch({ lookup: async () => [] })('http://none.test/')).rejects.toMatchObject({ code: 'upstream' })
    await expect(publicFetch({ lookup: neverLookedUp })('http://none.test/')).rejects.toMatchObject({ code: 'upstream' })
  })

  test('connects to the checked address, even if the name resolves to another now', async () => {
    const port = await serve((_request, response) => response.end('checked'))
    await serve((_request, response) => response.end('rebound'), '127.0.0.2', port)
    let lookups = 0
    const lookup = async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '127.0.0.2', family: 4 }]
    const response = await publicFetch({ lookup })(`http://site.test:${port}/`)
    expect([await response.text(), lookups]).toEqual(['checked', 1])
  })

  test('refuses a name that becomes private between two redirects', async () => {
    const port = await serve((_request, response) => response.writeHead(302, { location: `http://rebind.test:${port}/secret` }).end())
    const seen: string[] = []
    const lookup = async (hostname: string) => {
      seen.push(hostname)
      return [{ address: '127.0.0.1', family: 4 }]
    }
    await expect(publicFetch({ lookup })(`http://site.test:${port}/`)).rejects.toMatchObject({ code: 'forbidden' })
    expect(seen).toEqual(['site.test', 'rebind.test'])
  })

  test.each(['http://127.0.0.1:1/', '//[::1]/', 'http://0x7f000001/', 'file:///etc/passwd', 'http://a:b@site.test/'])(
    'a redirect to %s is refused',
    async (location) => {
      const port = await serve((_request, response) => response.writeHead(302, { location }).end())
      await expect(publicFetch()(`http://site.test:${port}/`)).rejects.toMatchObject({ code: 'forbidden' })
    },
  )

  test('follows five redirects, and refuses a sixth', async () => {
    const port = await serve((request, response) => {
      const left = Number(request.url?.slice(1))
      if (left === 0) response.end('there')
      else response.writeHead(302, { location: `/${left - 1}` }).end('moved')
    })
    const response = await publicFetch()(`http://site.test:${port}/5`)
    expect([await response.text(), response.url]).toEqual(['there', `http://site.test:${port}/0`])
    await expect(publicFetch()(`http://site.test:${port}/6`)).rejects.toMatchObject({ code: 'upstream' })
  })

  test.each([
    [301, 'POST', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [302, 'PUT', 'PUT'],
    [307, 'POST', 'POST'],
    [308, 'PUT', 'PUT'],
  ])('a %i to a %s goes on as %s', async (status, method, then) => {
    const port = await serve((request, response) => {
      if (request.url === '/') response.writeHead(status, { location: '/there' }).end()
      else echo(request, response)
    })
    const headers = { 'content-type': 'text/plain', authorization: 'Bearer t' }
    const response = await publicFetch()(`http://site.test:${port}/`, { method, headers, body: 'hello' })
    const seen = (await response.json()) as { method: string; body: string; headers: Record<string, string> }
    const keeps = then !== 'GET'
    expect([seen.method, seen.body, seen.headers['content-type']]).toEqual([then, keeps ? 'hello' : '', keeps ? 'text/plain' : undefined])
    expect(seen.headers.authorization).toBe('Bearer t')
  })

  test('sends no credentials to another origin, nor after a redirect back', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/') response.writeHead(307, { location: `http://other.test:${port}/back` }).end()
      else if (request.url === '/back') response.writeHead(307, { location: `http://site.test:${port}/end` }).end()
      else echo(request, response)
    })
    const headers = { authorization: 'Bearer t', cookie: 'a=b', 'proxy-authorization': 'x', 'x-plain': 'kept' }
    const response = await publicFetch()(`http://site.test:${port}/`, { headers })
    const seen = ((await response.json()) as { headers: Record<string, string> }).headers
    expect([seen.authorization, seen.cookie, seen['proxy-authorization'], seen['x-plain']]).toEqual([
      undefined,
      undefined,
      undefined,
      'kept',
    ])
  })

  test('asks the caller to admit each redirect', async () => {
    const port = await serve((_request, response) => response.writeHead(302, { location: `http://other.test:${port}/` }).end())
    const asked: string[] = []
    const admit = (url: URL) => {
      asked.push(url.hostname)
      if (url.hostname === 'other.test') throw new AppError('forbidden', 'not on the list')
    }
    await expect(publicFetch()(`http://site.test:${port}/`, { admit })).rejects.toMatchObject({ message: 'not on the list' })
    expect(asked).toEqual(['site.test', 'other.test'])
  })

  test('fails a body over the limit, with or without a content-length', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/told') response.setHeader('content-length', 1001)
      response.write('x'.repeat(500))
      response.end('x'.repeat(request.url === '/exact' ? 500 : 501))
    })
    const fetch = publicFetch()
    const options = { responseBytesMax: 1000 }
    await expect(fetch(`http://site.test:${port}/told`, options)).rejects.toMatchObject({ code: 'too_large' })
    const untold = await fetch(`http://site.test:${port}/untold`, options)
    await expect(untold.text()).rejects.toMatchObject({ code: 'too_large' })
    expect(await (await fetch(`http://site.test:${port}/exact`, options)).text()).toHaveLength(1000)
  })

  test('returns no body for answers that have none', async () => {
    const port = await serve((request, response) => {
      response.writeHead(request.method === 'HEAD' ? 200 : 204, request.method === 'HEAD' ? { 'content-length': 99_999_999 } : {}).end()
    })
    expect((await publicFetch()(`http://site.test:${port}/`, { method: 'HEAD' })).headers.get('content-length')).toBe('99999999')
    const empty = await publicFetch()(`http://site.test:${port}/`)
    expect([empty.status, empty.body]).toEqual([204, null])
  })

  test('ends the wait for the answer, the body and the resolver on abort', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/body') response.write('some')
    })
    const abort = new AbortController()
    const waiting = publicFetch()(`http://site.test:${port}/`, { signal: abort.signal })
    const resolving = publicFetch({ lookup: () => new Promise(() => {}) })('http://site.test/', { signal: abort.signal })
    const reading = (await publicFetch()(`http://site.test:${port}/body`, { signal: abort.signal })).text()
    abort.abort()
    for (const promise of [waiting, resolving, reading]) await expect(promise).rejects.toMatchObject({ code: 'aborted' })
    await expect(publicFetch()(`http://site.test:${port}/`, { signal: abort.signal })).rejects.toMatchObject({ code: 'aborted' })
  })

  test('reports a time-out of the caller as upstream_timeout, not as aborted', async () => {
    const port = await serve(() => {})
    const waiting = publicFetch()(`http://site.test:${port}/`, { signal: AbortSignal.timeout(5) })
    await expect(waiting).rejects.toMatchObject({ code: 'upstream_timeout' })
  })

  test('closes the connection when the body is cancelled', async () => {
    const gone = Promise.withResolvers<void>()
    const port = await serve((request: IncomingMessage, response) => {
      request.socket.on('close', () => gone.resolve())
      response.write('some')
    })
    const response = await publicFetch()(`http://site.test:${port}/`)
    await response.body?.cancel()
    await gone.promise
  })

  test('reports a server without HTTP, or without an answer, as upstream', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/cut') response.write('some', () => request.socket.destroy())
      else if (request.url === '/other') request.socket.end('HTTP/1.1 101 Other\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')
      else if (request.url === '/odd') request.socket.end('HTTP/1.1 999 Odd\r\n\r\n')
      else request.socket.destroy()
    })
    const fetch = publicFetch()
    await expect(fetch(`http://site.test:${port}/`)).rejects.toMatchObject({ code: 'upstream' })
    await expect(fetch(`http://site.test:${port}/odd`)).rejects.toMatchObject({ code: 'upstream' })
    await expect(fetch(`http://site.test:${port}/other`)).rejects.toMatchObject({ code: 'upstream' })
    await expect(fetch('http://site.test:1/')).rejects.toMatchObject({ code: 'upstream' })
    const cut = await fetch(`http://site.test:${port}/cut`)
    await expect(cut.text()).rejects.toMatchObject({ code: 'upstream' })
  })

  test('reports a status beyond 599 as upstream where another library has replaced the global Response', async () => {
    const port = await serve((request) => request.socket.end('HTTP/1.1 999 Odd\r\n\r\n'))
    const original = globalThis.Response
    globalThis.Response = class extends original {
      constructor(...[body, init]: ConstructorParameters<typeof Response>) {
        super(body, { ...init, status: 200 })
      }
    }
    try {
      await expect(publicFetch()(`http://site.test:${port}/`)).rejects.toMatchObject({ code: 'upstream' })
    } finally {
      globalThis.Response = original
    }
  })

  test('refuses headers and methods that could smuggle a request', async () => {
    const fetch = publicFetch()
    await expect(fetch('http://site.test/', { headers: { 'x-a': 'b\r\nx-c: d' } })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(fetch('http://site.test/', { headers: { 'x a': 'b' } })).rejects.toMatchObject({ code: 'invalid_request' })
    for (const method of ['GET / HTTP/1.1', 'CONNECT', 'TRACE', '']) {
      await expect(fetch('http://site.test/', { method })).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('checks the certificate against the name, and sends the name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tls-'))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=site.test', '-days', '1', '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject], {
      stdio: 'ignore',
    })
    const names: string[] = []
    const options = { key: readFileSync(key), cert: readFileSync(cert) }
    rmSync(folder, { recursive: true })
    const server = createTlsServer({
      ...options,
      SNICallback: (name, done) => {
        names.push(name)
        done(null)
      },
    })
    const port = await serve(() => {}, '127.0.0.1', 0, server)
    await expect(publicFetch()(`https://site.test:${port}/`)).rejects.toMatchObject({ code: 'upstream' })
    expect(names).toEqual(['site.test'])
  })

  test('exempts a host by its own name only', async () => {
    const port = await serve((_request, response) => response.end('inside'))
    const fetch = publicFetch({ allowPrivate: ['127.0.0.1', '[::1]', 'Site.Test'] })
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('inside')
    expect(await (await fetch(`http://site.test:${port}/`)).text()).toBe('inside')
    await expect(fetch(`http://sub.site.test:${port}/`)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(fetch(`http://127.0.0.2:${port}/`)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('exempts no host from a request that is for public addresses only', async () => {
    let requests = 0
    const port = await serve((_request, response) => {
      requests += 1
      response.end('inside')
    })
    const fetch = publicFetch({ allowPrivate: ['127.0.0.1', '[::1]', 'site.test'] })
    for (const host of ['127.0.0.1', 'site.test', 'SITE.test', '[::1]'])
      await expect(fetch(`http://${host}:${port}/`, { onlyPublic: true })).rejects.toMatchObject({ code: 'forbidden' })
    expect(requests).toBe(0)
  })
})

test('publicAddresses applies the same rule for callers that connect themselves', async () => {
  const signal = new AbortController().signal
  const mixed = [
    { address: '93.184.215.14', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ]
  expect(await publicAddresses()('site.test', signal)).toEqual([{ address: '127.0.0.1', family: 4 }])
  expect(await publicAddresses({ lookup: neverLookedUp })('[2600::1]', signal)).toEqual([{ address: '2600::1', family: 6 }])
  await expect(publicAddresses({ lookup: async () => mixed })('a.test', signal)).rejects.toMatchObject({ code: 'forbidden' })
  await expect(publicAddresses({ lookup: async () => [] })('a.test', signal)).rejects.toMatchObject({ code: 'upstream' })
  await expect(publicAddresses({ lookup: () => new Promise(() => {}) })('a.test', AbortSignal.abort())).rejects.toMatchObject({
    code: 'aborted',
  })
})
