import { Secret } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { isSlackUrl } from './api.ts'
import { accountOf, slackSection } from './config.ts'
import feature from './index.ts'

const tokens = { bot_token: 'xoxb-1', app_token: ' xapp-1-A0123-4-5 ' }
const read = (changes: object = {}) => v.safeParse(slackSection.schema, { ...tokens, ...changes })
const channelOf = (changes: object = {}) => feature.build(testHost(), v.parse(slackSection.schema, { ...tokens, ...changes })).channels?.[0]

test('slackSection requires both tokens and nothing else', () => {
  expect(read().success).toBe(true)
  for (const missing of ['bot_token', 'app_token']) expect(read({ [missing]: undefined }).success).toBe(false)
  expect(read().output).toMatchObject({
    enabled: true,
    channel_ids: [],
    allowed_users: [],
    thread_replies: true,
    mention_only: false,
    stream_mode: 'off',
    draft_update_interval_ms: 1200,
    api_url: 'https://slack.com/api/',
  })
})

test('slackSection rejects invalid values', () => {
  const wrong = [
    { stream_mode: 'full' },
    { draft_update_interval_ms: 299 },
    { api_url: 'https://u:p@slack.com/' },
    { api_url: 'slack.com' },
    { allowed_users: ['@ada'] },
    { allowed_users: ['C012AB3CD'] },
  ]
  for (const changes of wrong) expect(read(changes).success).toBe(false)
})

test('a disabled channel is not built', () => {
  expect(feature.build(testHost(), v.parse(slackSection.schema, { ...tokens, enabled: false }))).toEqual({
    disabledReason: '`enabled` is false',
  })
})

test('draftEveryMs is set only with stream_mode partial', () => {
  expect(channelOf()?.draftEveryMs).toBeUndefined()
  expect(channelOf({ stream_mode: 'partial', draft_update_interval_ms: 300 })?.draftEveryMs).toBe(300)
})

test('notifications go to notification_channel_id', () => {
  expect(channelOf()?.notifications).toEqual({
    target: 'workspace',
    opensThreads: true,
    account: 'A0123',
    key: 'channels_config.slack.notification_channel_id',
  })
  expect(channelOf({ notification_channel_id: 'C9' })?.notifications?.to).toEqual({ to: 'C9' })
})

test('accountOf returns the id of the app for each of its tokens', () => {
  expect(['xapp-1-A0123-4-5', 'xapp-1-A0123-9-9', 'something-else'].map((token) => accountOf(new Secret(token)))).toEqual([
    'A0123',
    'A0123',
    'app',
  ])
})

describe('isSlackUrl', () => {
  const api = 'https://slack.com/api/'

  test.each([
    'https://files.slack.com/x',
    'wss://wss-primary.slack.com/link/?ticket=1',
    'https://a.b.slack-edge.com/',
    'https://slack-files.com/',
    'wss://wss-primary.slack-gov.com/link/?ticket=1',
    'https://files.slack-gov.com/upload/v1/x',
  ])('accepts %s', (url) => {
    expect(isSlackUrl(url, api)).toBe(true)
  })

  test.each([
    'http://files.slack.com/x',
    'ws://wss-primary.slack.com/',
    'https://evilslack.com/',
    'wss://evilslack-gov.com/',
    'wss://wss-primary.slack-gov.com.evil.example/',
    'https://slack.com.evil.example/',
    'https://files.slack.com:8443/',
    'https://u:p@files.slack.com/',
    'https://127.0.0.1/',
    'file:///etc/passwd',
    '',
  ])('rejects %s', (url) => {
    expect(isSlackUrl(url, api)).toBe(false)
  })

  test('accepts the host of api_url, unencrypted only if api_url is', () => {
    expect(isSlackUrl('ws://127.0.0.1:8080/link', 'http://127.0.0.1:8080/api/')).toBe(true)
    expect(isSlackUrl('ws://127.0.0.1:8081/link', 'http://127.0.0.1:8080/api/')).toBe(false)
    expect(isSlackUrl('http://chat.example/x', 'https://chat.example/api/')).toBe(false)
  })
})
