import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { textrelaySection } from './config.ts'
import feature from './index.ts'

const least = { api_token: 'token', from_phone: '+15550001111' }
const build = (config: object) => feature.build(testHost(), v.parse(textrelaySection.schema, config)).channels ?? []

test('needs only a token and a number', () => {
  const [channel] = build(least)
  expect(channel?.allow).toEqual([])
  expect(v.parse(textrelaySection.schema, least).api_url).toBe('https://api.linqapp.com/api/partner/v3')
})

test.each([
  ['no token', { from_phone: '+15550001111' }],
  ['no number', { api_token: 'token' }],
  ['a number that is not E.164', { ...least, from_phone: '555-0001' }],
  ['an API URL that is not http or https', { ...least, api_url: 'ftp://example.com' }],
  ['an API URL with a query', { ...least, api_url: 'https://example.com/?a=b' }],
  ['an API URL with a password', { ...least, api_url: 'https://user:pass@example.com/' }],
])('rejects %s', (_what, config) => {
  expect(v.safeParse(textrelaySection.schema, config).success).toBe(false)
})

test('builds no channel with enabled = false', () => {
  expect(build({ ...least, enabled: false })).toEqual([])
})

test('treats a blank signing secret as absent', async () => {
  const [channel] = build({ ...least, signing_secret: ' \n' })
  expect(channel?.webhook?.unsigned).toBe('signing_secret')
  expect(channel?.webhook?.sample({ sender: '+15550003333', text: 'x', id: 'i', atMs: 0 }).headers).not.toHaveProperty(
    'x-webhook-signature',
  )
})
