import { expect, test } from 'vitest'
import { rawRequest } from './raw-request.ts'

const text = (body: Uint8Array) => new TextDecoder().decode(body)

test('takes the parts of a request of Node', () => {
  const headers = { 'X-Signature': 'abc', 'set-cookie': ['a=1', 'b=2'], 'x-absent': undefined }
  const raw = rawRequest({ url: '/hooks?x=1', headers, body: Buffer.from('{}'), receivedAtMs: 5 })
  expect(raw).toMatchObject({ headers: { 'x-signature': 'abc', 'set-cookie': 'a=1, b=2' }, receivedAtMs: 5 })
  expect(Object.keys(raw.headers)).not.toContain('x-absent')
  expect([raw.url.pathname, raw.url.search]).toEqual(['/hooks', '?x=1'])
})

test('takes the parts of a request of the Fetch API', async () => {
  const request = new Request('https://app.example/hooks', { method: 'POST', body: 'héllo', headers: { 'X-Signature': 'abc' } })
  const raw = rawRequest({ url: request.url, headers: request.headers, body: await request.arrayBuffer() })
  expect(raw.headers['x-signature']).toBe('abc')
  expect(raw.url.host).toBe('app.example')
  expect(text(raw.body)).toBe('héllo')
  expect(raw.receivedAtMs).toBeGreaterThan(0)
  expect(text(rawRequest({ url: '/', headers: {}, body: 'héllo' }).body)).toBe('héllo')
})

test.each([[{ parsed: true }], [undefined], [null]])('refuses the body %j, which is neither bytes nor a text', (body) => {
  expect(() => rawRequest({ url: '/', headers: {}, body: body as never })).toThrow('before any middleware parses them')
})
