import type { ProviderSettings } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { expect, it } from 'vitest'
import { modelEndpoint } from './model-endpoint.ts'

const KEY = 'sk-0123456789abcdef'
const settings: ProviderSettings = { kind: 'openai', model: 'small', api_key: new Secret(KEY) }
const noFetch: typeof fetch = async () => Response.error()

const check = (changed: Partial<ProviderSettings>, options: { keyRequired?: boolean } = {}) =>
  modelEndpoint({ ...settings, ...changed }, { baseUrl: 'https://models.example/v1', fetch: noFetch, ...options })

it('settings are completed: default address, no slash at its end, key and model trimmed', () => {
  expect(check({ api_key: new Secret(` ${KEY}\n`), model: ' small ' })).toMatchObject({
    baseUrl: 'https://models.example/v1',
    apiKey: KEY,
    model: 'small',
    headers: {},
  })
  expect(check({ base_url: 'http://127.0.0.1:8080/v1//' }).baseUrl).toBe('http://127.0.0.1:8080/v1')
  expect(check({ api_key: undefined }).apiKey).toBe('')
})

it.each<[key: string, wrong: Partial<ProviderSettings>]>([
  ['model', { model: undefined }],
  ['model', { model: '  ' }],
  ['api_key', { api_key: new Secret('') }],
  ['api_key', { api_key: new Secret(`${KEY}\nx: y`) }],
  ['api_key', { api_key: new Secret(`${KEY}\u2026`) }],
  ['headers', { headers: { 'x-team': `${KEY}\r\nx: y` } }],
  ['headers', { headers: { 'x team': KEY } }],
  ['base_url', { base_url: 'models.example' }],
  ['base_url', { base_url: `ftp://${KEY}` }],
  ['base_url', { base_url: `https://me:${KEY}@models.example/v1` }],
  ['base_url', { base_url: `https://models.example/v1?key=${KEY}` }],
])('throws config_invalid with [provider] %s and without the value for %o', (key, wrong) => {
  const thrown = (() => {
    try {
      return check(wrong, { keyRequired: true })
    } catch (error) {
      return error
    }
  })()
  expect(thrown).toMatchObject({ code: 'config_invalid', message: expect.stringContaining(`[provider] ${key} `) })
  expect(String(thrown)).not.toContain(KEY)
})

it('errors never hold the key, even where the endpoint echoes it; status and headers stay', async () => {
  const echo: typeof fetch = async () => new Response(`bad key ${KEY}`, { status: 401, headers: { 'retry-after': '7' } })
  const endpoint = modelEndpoint(settings, { baseUrl: 'https://models.example', fetch: echo })
  const response = await endpoint.fetch('https://models.example')
  expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([401, '7', 'bad key [secret]'])
})

it('errors are read to a bound', async () => {
  const flood: typeof fetch = async () => new Response(new Uint8Array(1_000_000).fill(120), { status: 500 })
  const endpoint = modelEndpoint({ ...settings, api_key: undefined }, { baseUrl: 'https://models.example', fetch: flood })
  expect((await (await endpoint.fetch('https://models.example')).text()).length).toBe(65_536)
})

it('answers pass through untouched and redirects are not followed', async () => {
  const seen: (RequestInit | undefined)[] = []
  const answer = new Response(`fine ${KEY}`)
  const record: typeof fetch = async (_url, init) => {
    seen.push(init)
    return answer
  }
  const endpoint = modelEndpoint(settings, { baseUrl: 'https://models.example', fetch: record })
  expect(await endpoint.fetch('https://models.example', { method: 'POST' })).toBe(answer)
  expect(seen).toEqual([{ method: 'POST', redirect: 'manual' }])
})

it('a JSON body in place of a stream is an error with its body', async () => {
  const answer: typeof fetch = async () => Response.json({ error: { code: 502, message: `no upstream for ${KEY}` } })
  const endpoint = modelEndpoint(settings, { baseUrl: 'https://models.example', fetch: answer })
  const asked = endpoint.fetch('https://models.example', { method: 'POST', body: JSON.stringify({ model: 'm', stream: true }) })
  await expect(asked).rejects.toMatchObject({
    statusCode: 200,
    responseBody: JSON.stringify({ error: { code: 502, message: 'no upstream for [secret]' } }),
  })
  const whole = await endpoint.fetch('https://models.example', { method: 'POST', body: JSON.stringify({ model: 'm' }) })
  expect(whole.status).toBe(200)
})

it('adds the options of the operator to each body, tables merged', async () => {
  const bodies: unknown[] = []
  const record: typeof fetch = async (_input, init) => {
    bodies.push(JSON.parse(String(init?.body)))
    return Response.json({})
  }
  const options = { service_tier: 'flex', reasoning: { summary: 'auto' }, stop: ['a'] }
  const endpoint = modelEndpoint({ ...settings, options }, { baseUrl: 'https://models.example', fetch: record })
  const body = { model: 'm', reasoning: { effort: 'low' }, stop: ['b', 'c'] }
  await endpoint.fetch('https://models.example', { method: 'POST', body: JSON.stringify(body) })
  expect(bodies).toEqual([{ model: 'm', reasoning: { effort: 'low', summary: 'auto' }, stop: ['a'], service_tier: 'flex' }])
})
