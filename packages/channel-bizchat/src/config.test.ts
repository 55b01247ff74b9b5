import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { bizchatSection } from './config.ts'
import feature from './index.ts'

const least = { api_token: 'token', api_url: 'https://host.example/tenant' }
const build = (config: object) => feature.build(testHost(), v.parse(bizchatSection.schema, config)).channels ?? []

test('needs only a token and a URL', () => {
  const [channel] = build(least)
  expect([channel?.allow, channel?.webhook?.unsigned]).toEqual([[], 'webhook_secret'])
})

test.each([
  ['no token', { api_url: 'https://host.example' }],
  ['no URL', { api_token: 'token' }],
  ['a URL that is not http or https', { ...least, api_url: 'file:///etc' }],
  ['a URL with a query', { ...least, api_url: 'https://host.example/?a=b' }],
  ['a tenant with a colon', { ...least, tenant_id: 'a:b' }],
])('rejects %s', (_what, config) => {
  expect(v.safeParse(bizchatSection.schema, config).success).toBe(false)
})

test('builds no channel with enabled = false', () => {
  expect(build({ ...least, enabled: false })).toEqual([])
})

test('treats a blank secret as absent', () => {
  const [channel] = build({ ...least, webhook_secret: ' ' })
  expect(channel?.webhook?.unsigned).toBe('webhook_secret')
  expect(channel?.webhook?.sample({ sender: '+1', text: 'x', id: 'i', atMs: 0 })).not.toHaveProperty('query')
})
