import { AppError, type ClientId, isAllowedDomain, type PublicRequest, type ToolContext, type ToolReport } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { httpSection } from './config.ts'
import feature from './index.ts'

const arrange = (answer: () => Response | Promise<Response> = () => new Response('hello'), config: object = { allowed_domains: ['*'] }) => {
  const requests: (PublicRequest & { url: string })[] = []
  const abort = new AbortController()
  const host = testHost({
    publicFetch: async (url, init) => {
      requests.push({ url, ...init })
      init.admit?.(new URL(url))
      const { promise, reject } = Promise.withResolvers<never>()
      const { signal } = init
      signal.addEventListener('abort', () => reject(new AppError('aborted', (signal.reason as Error).name)))
      return Promise.race([answer(), promise])
    },
  })
  const [tool] = feature.build(host, v.parse(httpSection.schema, config)).tools ?? []
  if (!tool) throw new Error('the feature built no tool')
  const reports: ToolReport[] = []
  const context: ToolContext = {
    ...host.by,
    report: (given) => reports.push(given),
    client: 'client' as ClientId,
    standing: 'operator',
    session: null,
    turn: 'turn',
    signal: abort.signal,
    trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
  }
  const run = async (input: object) => tool.run(v.parse(tool.input, input), context)
  const risk = (input: object) => (typeof tool.risk === 'function' ? tool.risk(v.parse(tool.input, input), host.by) : tool.risk)
  return { run, risk, requests, reports, host, abort }
}

test.each<[host: string, allowed: string[], is: boolean]>([
  ['example.com', [], false],
  ['example.com', ['*'], true],
  ['example.com', ['example.com'], true],
  ['example.com.', ['example.com'], true],
  ['api.example.com', ['example.com'], true],
  ['a.b.example.com', ['*.example.com'], true],
  ['example.com', ['EXAMPLE.com'], true],
  ['xn--bcher-kva.example', ['bücher.example'], true],
  ['badexample.com', ['example.com'], false],
  ['example.com.evil.test', ['example.com'], false],
  ['example.org', ['example.com', 'example.net'], false],
  ['com', ['example.com'], false],
  ['example.com', ['not a domain'], false],
  ['93.184.215.14', ['93.184.215.14'], true],
])('isAllowedDomain(%s, %j) is %j', (host, allowed, is) => {
  expect(isAllowedDomain(host, allowed)).toBe(is)
})

test('rejects every request while allowed_domains is empty, without sending it', async () => {
  const { run, requests } = arrange(undefined, {})
  await expect(run({ url: 'https://example.com/' })).rejects.toMatchObject({
    code: 'forbidden',
    message: expect.stringContaining('allowed_domains under [tools.http_request]'),
  })
  expect(requests).toEqual([])
})

test('rejects a host that is not listed', async () => {
  const { run } = arrange(undefined, { allowed_domains: ['example.com'] })
  await expect(run({ url: 'https://evil.test/' })).rejects.toMatchObject({
    code: 'forbidden',
    message: expect.stringContaining("'evil.test'"),
  })
  expect(await run({ url: 'https://api.example.com/' })).toContain('hello')
})

test('sends the request unchanged, with the configured size limit', async () => {
  const { run, requests } = arrange(undefined, { allowed_domains: ['*'], response_bytes_max: 2048 })
  await run({ url: 'https://example.com/a', method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'x' })
  expect(requests[0]).toMatchObject({
    url: 'https://example.com/a',
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: 'x',
    responseBytesMax: 2048,
  })
})

test('returns the status, selected headers and body, and no cookies', async () => {
  const headers = { 'content-type': 'application/json', 'set-cookie': 'a=b', 'x-own': 'y', etag: '"1"' }
  const { run } = arrange(() => new Response('{"a":1}', { status: 404, statusText: 'Not Found', headers }))
  expect(await run({ url: 'https://example.com/' })).toBe('HTTP 404 Not Found\ncontent-type: application/json\netag: "1"\n\n{"a":1}')
})

test('states the final URL after redirects', async () => {
  const { run } = arrange(() => Object.defineProperty(new Response('x'), 'url', { value: 'https://example.com/there' }))
  expect(await run({ url: 'https://example.com/' })).toContain('[redirected to https://example.com/there]')
  expect(await run({ url: 'HTTPS://example.com/x/../there' })).not.toContain('redirected')
})

test('states the size of a body that is not text', async () => {
  const bytes = new Uint8Array([1, 0, 2])
  const png = () => new Response('GIF', { headers: { 'content-type': 'image/gif' } })
  const gzip = () => new Response('x', { headers: { 'content-encoding': 'gzip' } })
  expect(await arrange(() => new Response(bytes)).run({ url: 'https://a.test/' })).toContain('[3 bytes that are not text]')
  expect(await arrange(png).run({ url: 'https://a.test/' })).toContain('[3 bytes that are not text]')
  expect(await arrange(gzip).run({ url: 'https://a.test/' })).toContain('[1 bytes that are not text]')
  expect(await arrange(() => new Response(null, { status: 204 })).run({ url: 'https://a.test/' })).toBe('HTTP 204\n\n[no body]')
})

test('decodes with the charset of the response, or UTF-8 when it is unknown', async () => {
  const body = new Uint8Array([0xe9])
  const latin = () => new Response(body, { headers: { 'content-type': 'text/plain; charset=iso-8859-1' } })
  const odd = () => new Response('é', { headers: { 'content-type': 'text/plain; charset=klingon' } })
  expect(await arrange(latin).run({ url: 'https://a.test/' })).toMatch(/é$/)
  expect(await arrange(odd).run({ url: 'https://a.test/' })).toMatch(/é$/)
})

test('aborts after timeout_secs and leaves no timer', async () => {
  const { run, host } = arrange(() => new Promise(() => {}), { allowed_domains: ['*'], timeout_secs: 5 })
  const running = run({ url: 'https://a.test/' })
  const outcome = expect(running).rejects.toMatchObject({ message: 'TimeoutError' })
  await host.advance(4999)
  expect(host.clock.sleeping).toBe(1)
  await host.advance(1)
  await outcome
  expect(host.clock.sleeping).toBe(0)
})

test('leaves no timer after a response', async () => {
  const { run, host } = arrange()
  await run({ url: 'https://a.test/' })
  expect(host.clock.sleeping).toBe(0)
})

test('aborts the request when the turn is aborted', async () => {
  const { run, abort } = arrange(() => new Promise(() => {}))
  const running = run({ url: 'https://a.test/' })
  abort.abort()
  await expect(running).rejects.toMatchObject({ message: 'AbortError' })
})

test('has risk read for GET and HEAD to an allowed host, else execute', () => {
  const { risk } = arrange(undefined, { allowed_domains: ['example.com'] })
  expect(risk({ url: 'https://example.com/' })).toBe('read')
  expect(risk({ url: 'https://example.com/', method: 'HEAD' })).toBe('read')
  expect(risk({ url: 'https://example.com/', body: 'x' })).toBe('execute')
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) expect(risk({ url: 'https://example.com/', method })).toBe('execute')
  expect(risk({ url: 'https://evil.test/' })).toBe('execute')
  expect(risk({ url: 'nonsense' })).toBe('execute')
})

test('rejects a configuration out of bounds', () => {
  for (const config of [{ timeout_secs: 0 }, { timeout_secs: 301 }, { response_bytes_max: 1 }, { allowed_domains: [''] }]) {
    expect(v.safeParse(httpSection.schema, config).success).toBe(false)
  }
})

test.each<[number, string | null, ToolReport]>([
  [200, '{"n":1}', { data: '{"n":1}' }],
  [204, null, {}],
  [404, 'gone', { data: 'gone', failed: true }],
])('reports the body of status %d and whether it is a failure', async (status, body, reported) => {
  const { run, reports } = arrange(() => new Response(body, { status }))
  await run({ url: 'https://a.test/' })
  expect(reports).toEqual([reported])
})

test('says that its own refusal has no words of others', async () => {
  const allowed = { allowed_domains: ['example.com'] }
  const { run, reports } = arrange(undefined, allowed)
  await expect(run({ url: 'https://evil.test/' })).rejects.toMatchObject({ code: 'forbidden' })
  expect(reports).toEqual([{ readNothing: true }])
  const failing = arrange(() => Promise.reject(new AppError('upstream', 'gone')), allowed)
  await expect(failing.run({ url: 'https://example.com/' })).rejects.toMatchObject({ code: 'upstream' })
  expect(failing.reports).toEqual([])
})

test('is offered only where a host is allowed', () => {
  const offered = (allowed_domains: string[]) => {
    const [tool] = feature.build(testHost(), v.parse(httpSection.schema, { allowed_domains })).tools ?? []
    return tool?.available?.()
  }
  expect([offered([]), offered(['example.com'])]).toEqual([false, true])
})
