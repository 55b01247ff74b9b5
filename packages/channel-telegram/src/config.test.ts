import { Secret } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { telegramSection } from './config.ts'
import feature from './index.ts'
import { normaliseUser } from './known-names.ts'

const LEAST = { bot_token: '700100:token' }
const parse = (changes: object = {}) => v.safeParse(telegramSection.schema, { ...LEAST, ...changes })

test('telegramSection requires bot_token and has defaults for the rest', () => {
  expect(parse().output).toEqual({
    enabled: true,
    bot_token: expect.any(Secret),
    allowed_users: [],
    stream_mode: 'off',
    draft_update_interval_ms: 1000,
    mention_only: false,
    api_url: 'https://api.telegram.org',
  })
  expect(parse({ bot_token: undefined }).success).toBe(false)
})

test('telegramSection rejects invalid values', () => {
  for (const changes of [
    { draft_update_interval_ms: 199 },
    { stream_mode: 'multi_message' },
    { api_url: 'ftp://x' },
    { api_url: 'https://a:b@x' },
    { notification_chat_id: 'general' },
    { notification_chat_id: 1.5 },
    { allowed_users: ['Ada Lovelace'] },
    { allowed_users: ['-100200'] },
    { allowed_users: ['+442079460958'] },
  ]) {
    expect(parse(changes).success).toBe(false)
  }
})

test('notifications go to the configured chat, given as a number or a text', () => {
  const notified = (changes: object) =>
    feature.build(testHost(), v.parse(telegramSection.schema, { ...LEAST, ...changes })).channels?.[0]?.notifications
  const none = { target: 'messenger', opensThreads: false, account: '700100', key: 'channels_config.telegram.notification_chat_id' }
  expect(notified({})).toEqual(none)
  for (const notification_chat_id of [-100_200, '-100200'])
    expect(notified({ notification_chat_id })).toEqual({ ...none, to: { to: '-100200' } })
  expect(notified({ notification_chat_id: '@ops_room' })).toEqual({ ...none, to: { to: '@ops_room' } })
})

test('a disabled channel is not built', () => {
  const built = (changes: object) => feature.build(testHost(), v.parse(telegramSection.schema, { ...LEAST, ...changes }))
  expect(built({}).channels).toHaveLength(1)
  expect(built({ enabled: false })).toEqual({ disabledReason: '`enabled` is false' })
})

test.each([
  ['@Ada', 'ada'],
  [' ada ', 'ada'],
  ['1001', '1001'],
])('normaliseUser returns one form for %j', (user, form) => {
  expect(normaliseUser(user)).toBe(form)
  expect(normaliseUser(form)).toBe(form)
})
