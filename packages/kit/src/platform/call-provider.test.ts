import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { inspect } from 'node:util'
import { AppError, type ErrorCode } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { asUnavailable, callProvider, nothingSent, type ProviderCall, retryAfterSecs } from './call-provider.ts'

const TOKEN = 'token-that-must-not-show'
const NEVER = new AbortController().signal

const call = (changes: Partial<ProviderCall>) =>
  callProvider({
    fetch,
    provider: 'chatapp',
    url: `http://127.0.0.1:9/bot${TOKEN}/send?key=${TOKEN}`,
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: { text: 'hello' },
    signal: NEVER,
    ...changes,
  })
const answers = (response: () => Response) => ({ fetch: async () => response() })
const breaks = (error: unknown) => ({ fetch: () => Promise.reject(error) })
const network = (code: string) => new TypeError('fetch failed', { cause: Object.assign(new Error(`${code} ${TOKEN}`), { code }) })
const errorOf = async (changes: Partial<ProviderCall>): Promise<AppError> => {
  const error = await call(changes).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(AppError)
  return error as AppError
}

const servers: Server[] = []
/** The URL of a server on this machine. */
const serve = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
  }
})

describe('a request', () => {
  const sent = async (body: ProviderCall['body'], headers: Record<string, string> = {}) => {
    let request: Request | undefined
    await call({
      headers,
      ...(body !== undefined && { body }),
      fetch: async (input, init) => {
        request = new Request(input, init)
        return new Response()
      },
    })
    return request as Request
  }

  test('sends an object as JSON and accepts JSON', async () => {
    const request = await sent({ text: 'né' })
    expect(Object.fromEntries(request.headers)).toMatchObject({ accept: 'application/json', 'content-type': 'application/json' })
    expect(await request.json()).toEqual({ text: 'né' })
  })

  test("prefers the caller's headers", async () => {
    expect((await sent({}, { 'content-type': 'application/vnd.x+json' })).headers.get('content-type')).toBe('application/vnd.x+json')
  })

  test('sends texts, bytes and forms unchanged', async () => {
    expect(await (await sent('a=b')).text()).toBe('a=b')
    expect([...new Uint8Array(await (await sent(Uint8Array.of(0xff, 0))).arrayBuffer())]).toEqual([0xff, 0])
    const form = new FormData()
    form.set('file', new Blob(['x']), 'x.txt')
    expect((await sent(form)).headers.get('content-type')).toMatch(/^multipart\/form-data; boundary=/)
  })
})

describe('an answer', () => {
  test('with 2xx has status, headers and JSON, or undefined for an empty body', async () => {
    const answered = await call(answers(() => Response.json({ id: 1 }, { status: 201, headers: { 'x-id': '7' } })))
    expect([answered.status, answered.json, answered.headers.get('x-id')]).toEqual([201, { id: 1 }, '7'])
    expect((await call(answers(() => new Response(null, { status: 204 })))).json).toBeUndefined()
    expect((await call(answers(() => new Response(' \n')))).json).toBeUndefined()
  })

  test('with an accepted status is not an error', async () => {
    const gone = answers(() => Response.json({ error: 'too old' }, { status: 404 }))
    expect(await call({ ...gone, accept: [404] })).toMatchObject({ status: 404, json: { error: 'too old' } })
    expect((await errorOf({ ...gone, accept: [410] })).code).toBe('invalid_request')
  })
})

describe('an error code', () => {
  const waits = { 'retry-after': '7' }

  test.each<[status: number, headers: Record<string, string>, code: ErrorCode, retryAfterSecs: number | undefined]>([
    [429, {}, 'rate_limited', undefined],
    [429, waits, 'rate_limited', 7],
    [401, {}, 'unavailable', undefined],
    [503, waits, 'unavailable', 7],
    [503, {}, 'unavailable', undefined],
    [500, {}, 'upstream', undefined],
    [502, waits, 'upstream', 7],
    [504, {}, 'upstream', undefined],
    [408, {}, 'upstream', undefined],
    [403, {}, 'forbidden', undefined],
    [400, {}, 'invalid_request', undefined],
    [404, {}, 'invalid_request', undefined],
    [413, {}, 'invalid_request', undefined],
    [422, {}, 'invalid_request', undefined],
    [301, { location: 'http://127.0.0.1:9/' }, 'invalid_request', undefined],
    [304, {}, 'invalid_request', undefined],
  ])('for %d with %j is %s', async (status, headers, code, secs) => {
    const error = await errorOf(answers(() => new Response(null, { status, headers })))
    expect([error.code, error.retryAfterSecs]).toEqual([code, secs])
    expect(error.message).toContain(`chatapp answered ${status}`)
  })

  test.each<[status: number, code: ErrorCode]>([
    [500, 'unavailable'],
    [501, 'unavailable'],
    [503, 'unavailable'],
    [529, 'unavailable'],
    [502, 'upstream'],
    [504, 'upstream'],
    [408, 'upstream'],
  ])('for %d with an explanation is %s', async (status, code) => {
    const explain = (json: unknown) => (json as { error?: string } | undefined)?.error
    const said = answers(() => Response.json({ error: 'out of order' }, { status }))
    expect(await errorOf({ ...said, explain })).toMatchObject({ code, message: `chatapp answered ${status}: out of order` })
    const proxy = answers(() => new Response('<html>Service Unavailable</html>', { status }))
    expect(await errorOf({ ...proxy, explain })).toMatchObject({ code: status === 503 ? 'unavailable' : 'upstream' })
  })

  test.each([
    'upstream connect error or disconnect/reset before headers. reset reason: connection termination',
    'upstream prematurely closed connection while reading response header from upstream',
    '{"error":{"message":"connection reset by peer"}}',
    'The connection was closed',
  ])('for 503 with %j is upstream', async (body) => {
    expect(await errorOf(answers(() => new Response(body, { status: 503, headers: waits })))).toMatchObject({ code: 'upstream' })
  })

  test('for 503 says that a repeat may arrive twice, and for 429 not', async () => {
    const of = async (status: number) => (await errorOf(answers(() => new Response(null, { status })))).mayHaveArrived
    expect([await of(503), await of(429)]).toEqual([true, false])
  })

  test.each([
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'EADDRNOTAVAIL',
    'UND_ERR_CONNECT_TIMEOUT',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
  ])('for %s, which is a missing connection, is unavailable', async (code) => {
    expect(await errorOf(breaks(network(code)))).toMatchObject({ code: 'unavailable', message: `chatapp cannot be reached (${code})` })
  })

  test('for any failure while connecting is unavailable', async () => {
    const cause = Object.assign(new Error('timed out'), { code: 'ETIMEDOUT', syscall: 'connect' })
    expect(await errorOf(breaks(new TypeError('fetch failed', { cause })))).toMatchObject({ code: 'unavailable' })
  })

  test.each(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])(
    'for %s after the connection is upstream',
    async (code) => {
      expect(await errorOf(breaks(network(code)))).toMatchObject({ code: 'upstream', message: `The connection to chatapp broke (${code})` })
    },
  )

  test('for any other thrown value is upstream', async () => {
    for (const thrown of [new Error(TOKEN), TOKEN, undefined, null, new TypeError('x', { cause: { code: TOKEN } })]) {
      expect(await errorOf(breaks(thrown))).toMatchObject({ code: 'upstream', message: 'The connection to chatapp broke' })
    }
  })

  test('for a successful answer that cannot be read is upstream', async () => {
    for (const body of ['<html>', '{"id":', 'ok']) {
      expect(await errorOf(answers(() => new Response(body)))).toMatchObject({
        code: 'upstream',
        message: 'The answer of chatapp is not JSON',
      })
    }
  })

  test('for any failure before the first written byte is unavailable', async () => {
    const server = createTcpServer((socket) => void socket.on('data', () => socket.destroy()).on('error', () => undefined))
    const silent = createTcpServer(() => undefined)
    const url = async (tcp: TcpServer, scheme: string) => {
      await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
      return `${scheme}://127.0.0.1:${(tcp.address() as AddressInfo).port}/`
    }
    const [resetsTls, holdsTls] = [await url(server, 'https'), await url(silent, 'https')]
    const cutOff = new AbortController()
    expect(await errorOf({ url: resetsTls })).toMatchObject({ code: 'unavailable', message: 'chatapp cannot be reached (ECONNRESET)' })
    expect(await errorOf({ url: resetsTls.replace('https', 'http') })).toMatchObject({ code: 'upstream' })
    expect(await errorOf({ url: holdsTls, timeoutMs: 50 })).toMatchObject({
      code: 'unavailable',
      message: 'chatapp cannot be reached (no connection in time)',
    })
    silent.once('connection', () => cutOff.abort())
    expect(await errorOf({ url: holdsTls, signal: cutOff.signal })).toMatchObject({ code: 'unavailable' })
    expect(await errorOf({ url: 'http://no such host/' })).toMatchObject({ code: 'unavailable' })
    server.close()
    silent.close()
  })

  test.each(['to\nken', 'tok\u2014en', 'to\u0000ken'])('for a header that HTTP forbids is unavailable: %j', async (token) => {
    const error = await errorOf({ headers: { authorization: token } })
    expect(error.code).toBe('unavailable')
    expect(error.message).not.toContain(token)
  })

  test('tells a refused connection, a reset one and a cut answer apart', async () => {
    const closed = await serve(() => undefined)
    await new Promise((resolve) => servers.pop()?.close(resolve))
    expect((await errorOf({ url: closed })).code).toBe('unavailable')
    expect((await errorOf({ url: await serve((_, out) => out.socket?.resetAndDestroy()) })).code).toBe('upstream')
    const cut = await serve((_, out) => out.writeHead(200, { 'content-length': 100 }).write('{"id":"1', () => out.destroy()))
    expect((await errorOf({ url: cut })).code).toBe('upstream')
  })
})

describe('Retry-After', () => {
  const NOW = Date.UTC(2026, 0, 1, 0, 0, 0)
  test.each([
    ['120', 120],
    [' 0 ', 0],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['soon', undefined],
    ['', undefined],
    ['-5x', undefined],
  ])('%j is %s', (value, secs) => expect(retryAfterSecs(new Headers({ 'retry-after': value }), NOW)).toBe(secs))

  test('is rounded up to a whole second, and undefined when absent', () => {
    expect(retryAfterSecs(new Headers({ 'retry-after': 'Thu, 01 Jan 2026 00:00:10 GMT' }), NOW + 500)).toBe(10)
    expect(retryAfterSecs(new Headers(), NOW)).toBeUndefined()
  })
})

describe('limits', () => {
  test('end an answer after 1 MiB and close the connection', async () => {
    let closed: Promise<void> | undefined
    const url = await serve((_, out) => {
      closed = new Promise((resolve) => out.on('close', resolve))
      out.writeHead(200)
      const chunk = Buffer.alloc(65_536, ' ')
      const pump = () => {
        while (!out.destroyed && out.write(chunk));
      }
      out.on('drain', pump)
      pump()
    })
    expect(await errorOf({ url })).toMatchObject({ code: 'upstream', message: 'The answer of chatapp is larger than 1048576 bytes' })
    await closed
    const full = `"${'x'.repeat(1_048_574)}"`
    expect((await call(answers(() => new Response(full)))).json).toHaveLength(1_048_574)
  })

  test('allow larger answers with answerBytesMax, and throw too_large beyond', async () => {
    const ten = () => answers(() => new Response('"12345678"'))
    expect(await call({ ...ten(), answerBytesMax: 10 })).toMatchObject({ json: '12345678' })
    expect(await errorOf({ ...ten(), answerBytesMax: 9 })).toMatchObject({ code: 'too_large' })
  })

  test('keep a refusal whose explanation does not arrive whole', async () => {
    expect((await errorOf(answers(() => new Response('x'.repeat(1_048_577), { status: 429 })))).code).toBe('rate_limited')
    const cut = await serve((_, out) => out.writeHead(400, { 'content-length': 100 }).write('{', () => out.destroy()))
    expect((await errorOf({ url: cut })).code).toBe('invalid_request')
  })

  test('follow no redirect, so no credential reaches another host', async () => {
    let stranger = 0
    const elsewhere = await serve((_, out) => {
      stranger++
      out.end('{}')
    })
    for (const status of [301, 302, 303, 307, 308]) {
      const url = await serve((_, out) => out.writeHead(status, { location: elsewhere }).end('{"id":"1"}'))
      expect(await errorOf({ url })).toMatchObject({
        code: 'invalid_request',
        message: `chatapp answered ${status}, a redirect, which is not followed`,
      })
    }
    expect(stranger).toBe(0)
  })

  test('report a late answer as upstream_timeout, before the headers or in the body', async () => {
    const silent = await serve(() => undefined)
    const stuck = await serve((_, out) => out.writeHead(200).write('{'))
    for (const url of [silent, stuck]) {
      expect(await errorOf({ url, timeoutMs: 50 })).toMatchObject({
        code: 'upstream_timeout',
        message: 'chatapp did not answer within 0.05 s',
      })
    }
  })

  test('report an abort as aborted, before, during and after the request', async () => {
    expect((await errorOf({ signal: AbortSignal.abort() })).code).toBe('aborted')
    for (const answer of [() => undefined, ((_, out) => out.writeHead(200).write('{')) satisfies RequestListener]) {
      const abort = new AbortController()
      const url = await serve((request, out) => {
        answer(request, out)
        setImmediate(() => abort.abort())
      })
      expect(await errorOf({ url, signal: abort.signal })).toMatchObject({
        code: 'aborted',
        message: 'The request to chatapp was cut off',
      })
    }
  })
})

describe('an error text', () => {
  const refusal = (body: string) => answers(() => new Response(body, { status: 400 }))
  const explain = (json: unknown) => (json as { message?: string } | undefined)?.message

  test("has the platform's explanation, cut at 300 characters", async () => {
    expect((await errorOf({ ...refusal('{"message":"no such room"}'), explain })).message).toBe('chatapp answered 400: no such room')
    expect((await errorOf({ ...refusal(JSON.stringify({ message: 'x'.repeat(1000) })), explain })).message).toBe(
      `chatapp answered 400: ${'x'.repeat(300)}`,
    )
    for (const body of ['', '<html>', '{}', '{"message":""}'])
      expect((await errorOf({ ...refusal(body), explain })).message).toBe('chatapp answered 400')
  })

  test('has no URL, header or body of the request', async () => {
    const failures = [
      ...[301, 400, 401, 403, 429, 500, 503].map((status) => answers(() => new Response(`"${TOKEN}"`, { status }))),
      answers(() => new Response(`<html>${TOKEN}`)),
      ...['ECONNREFUSED', 'ECONNRESET'].map((code) => breaks(network(code))),
      breaks(new TypeError(`Failed to parse URL from ${TOKEN}`)),
    ]
    for (const failure of failures) expect(inspect(await errorOf(failure), { depth: 9 })).not.toContain(TOKEN)
  })
})

test('removes the credentials of the request from a refusal, wherever it is cut', async () => {
  const secret = 'dcBotTokenCanary0123456789'
  const requests: Partial<ProviderCall>[] = [
    { headers: { authorization: `Bot ${secret}` } },
    { headers: { 'X-Api-Key': secret } },
    { url: `http://127.0.0.1:9/bot123:${secret}/send` },
    { url: `http://127.0.0.1:9/send?key=${secret}` },
    { body: new URLSearchParams({ client_secret: secret }).toString() },
  ]
  for (const request of requests)
    for (let at = 260; at < 310; at++) {
      const said = `${'x'.repeat(at)}${secret} ${request.url ?? ''}`
      const answer = () => new Response(JSON.stringify({ message: said }), { status: 403 })
      const { message } = await errorOf({ ...request, ...answers(answer), explain: (json) => (json as { message: string }).message })
      expect(message).not.toContain('dcBotTokenCan')
    }
})

test('removes credentials from an accepted refusal as well', async () => {
  const answer = () => new Response(JSON.stringify({ message: `no ${TOKEN}` }), { status: 403 })
  expect((await call({ ...answers(answer), accept: [403] })).json).toEqual({ message: 'no [secret]' })
})

describe('asUnavailable', () => {
  test.each(['rate_limited', 'upstream', 'upstream_timeout'] as const)('turns %s into unavailable and keeps the wait', (code) => {
    expect(asUnavailable(new AppError(code, 'later', { retryAfterSecs: 7 }))).toMatchObject({
      code: 'unavailable',
      message: 'later',
      retryAfterSecs: 7,
    })
  })

  test('returns other errors unchanged', () => {
    for (const error of [new AppError('forbidden', 'never'), new Error('a bug')]) expect(asUnavailable(error)).toBe(error)
  })
})

test('a failure before the message means that nothing was sent', () => {
  const of = (error: AppError) => {
    const { code, mayHaveArrived, retryAfterSecs } = nothingSent(error) as AppError
    return [code, mayHaveArrived, retryAfterSecs]
  }
  for (const code of ['upstream', 'upstream_timeout', 'aborted'] as const)
    expect(of(new AppError(code, 'x'))).toEqual(['unavailable', false, undefined])
  expect(of(new AppError('unavailable', 'x', { mayHaveArrived: true, retryAfterSecs: 7 }))).toEqual(['unavailable', false, 7])
  const refused = new AppError('forbidden', 'x')
  expect(nothingSent(refused)).toBe(refused)
})
