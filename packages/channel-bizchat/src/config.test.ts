import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { bizchatSection } from './config.ts'
import feature from './index.ts'

const least = { api_token: 'token', api_url: 'https://host.example/tenant' }
const build = (config: object) => feature.build(testHost(), v.parse(bizchatSection.schema, config)).channels ?? []

test('§2.3 token and address are all that is needed', () => {
  const [channel] = build(least)
  expect([channel?.allow, channel?.webhook?.unsigned]).toEqual([[], 'webhook_secret'])
})

test.each([
  ['no token', { api_url: 'https://host.example' }],
  ['no address', { api_token: 'token' }],
  ['an address that is no web address', { ...least, api_url: 'file:///etc' }],
  ['an address with a query', { ...least, api_url: 'https://host.example/?a=b' }],
  ['a tenant with a colon', { ...least, tenant_id: 'a:b' }],
])('%s is refused', (_what, config) => {
  expect(v.safeParse(bizchatSection.schema, config).success).toBe(false)
})

test('enabled = false leaves the channel out', () => {
  expect(build({ ...least, enabled: false })).toEqual([])
})

test('a blank secret counts as none', () => {
  const [channel] = build({ ...least, webhook_secret: ' ' })
  expect(channel?.webhook?.unsigned).toBe('webhook_secret')
  expect(channel?.webhook?.sample({ sender: '+1', text: 'x', id: 'i', atMs: 0 })).not.toHaveProperty('query')
})
