import { Secret } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { roomchatSection } from './config.ts'
import feature from './index.ts'
import { normaliseUrl } from './server.ts'

const LEAST = { base_url: 'https://cloud.example', app_token: 'token' }
const parse = (changes: object = {}) => v.safeParse(roomchatSection.schema, { ...LEAST, ...changes })

test('requires base_url and app_token and has defaults for the other keys', () => {
  const { output, success } = parse()
  expect(success).toBe(true)
  expect(output).toEqual({ ...LEAST, app_token: expect.any(Secret), enabled: true, ack_reactions: true, bot_name: '', allowed_users: [] })
  for (const missing of ['base_url', 'app_token']) expect(parse({ [missing]: undefined }).success).toBe(false)
})

test('accepts a base_url with scheme, host, port and path only', () => {
  for (const base_url of ['https://cloud.example/talk/', 'http://127.0.0.1:8080', 'HTTPS://cloud.example']) {
    expect(parse({ base_url }).success).toBe(true)
  }
  for (const base_url of ['cloud.example', 'ftp://cloud.example', 'https://a:b@cloud.example', 'https://cloud.example/?x', 'https://c#x']) {
    expect(parse({ base_url }).success).toBe(false)
  }
})

test('builds no channel with enabled = false', () => {
  const built = (changes: object) => feature.build(testHost(), v.parse(roomchatSection.schema, { ...LEAST, ...changes })).channels ?? []
  expect(built({}).map(({ name }) => name)).toEqual(['roomchat'])
  expect(built({ enabled: false })).toEqual([])
})

test('normaliseUrl returns one form for each URL', () => {
  expect(normaliseUrl('HTTPS://Cloud.Example:443/a//')).toBe('https://cloud.example/a')
  expect(normaliseUrl('http://cloud.example:8080')).toBe('http://cloud.example:8080')
  expect(normaliseUrl('/')).toBeUndefined()
})
