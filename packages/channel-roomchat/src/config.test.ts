import { Secret } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { plainUrl } from './base-url.ts'
import { roomchatSection } from './config.ts'
import feature from './index.ts'

const LEAST = { base_url: 'https://cloud.example', app_token: 'token' }
const parse = (changes: object = {}) => v.safeParse(roomchatSection.schema, { ...LEAST, ...changes })

test('§2.3 base_url and app_token are required, the rest has its defaults', () => {
  const { output, success } = parse()
  expect(success).toBe(true)
  expect(output).toEqual({ ...LEAST, app_token: expect.any(Secret), enabled: true, bot_name: '', allowed_users: [] })
  for (const missing of ['base_url', 'app_token']) expect(parse({ [missing]: undefined }).success).toBe(false)
})

test('base_url is an http or https address of a server, and no more', () => {
  for (const base_url of ['https://cloud.example/talk/', 'http://127.0.0.1:8080', 'HTTPS://cloud.example']) {
    expect(parse({ base_url }).success).toBe(true)
  }
  for (const base_url of ['cloud.example', 'ftp://cloud.example', 'https://a:b@cloud.example', 'https://cloud.example/?x', 'https://c#x']) {
    expect(parse({ base_url }).success).toBe(false)
  }
})

test('a channel that is not enabled is not built', () => {
  const built = (changes: object) => feature.build(testHost(), v.parse(roomchatSection.schema, { ...LEAST, ...changes })).channels ?? []
  expect(built({}).map(({ name }) => name)).toEqual(['roomchat'])
  expect(built({ enabled: false })).toEqual([])
})

test('one address has one form', () => {
  expect(plainUrl('HTTPS://Cloud.Example:443/a//')).toBe('https://cloud.example/a')
  expect(plainUrl('http://cloud.example:8080')).toBe('http://cloud.example:8080')
  expect(plainUrl('/')).toBeUndefined()
})
