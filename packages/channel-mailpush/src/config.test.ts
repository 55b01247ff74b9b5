import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { mailpushSection } from './config.ts'
import feature from './index.ts'

const read = (section: object) => v.safeParse(mailpushSection.schema, section)
const NEEDED = { enabled: true, topic: 'projects/p/topics/t' }

test('is disabled by default, reads the inbox and allows no sender', () => {
  expect(read({ topic: 'projects/p/topics/t' }).output).toEqual({
    enabled: false,
    topic: 'projects/p/topics/t',
    label_filter: ['INBOX'],
    allowed_senders: [],
    api_url: 'https://gmail.googleapis.com',
    token_url: 'https://oauth2.googleapis.com/token',
    jwks_url: 'https://www.googleapis.com/oauth2/v3/certs',
  })
})

test('builds a channel only with enabled = true', () => {
  const channels = (section: object) => feature.build(testHost(), v.parse(mailpushSection.schema, section)).channels ?? []
  expect(channels({ topic: 'projects/p/topics/t' })).toEqual([])
  expect(channels({ ...NEEDED, enabled: false })).toEqual([])
  expect(channels(NEEDED).map(({ name, webhook }) => [name, webhook?.path, webhook?.bodyBytesMax])).toEqual([
    ['mailpush', '/webhook/mailpush', 1_048_576],
  ])
})

test('names the missing keys without a token', () => {
  const lacks = (section: object) =>
    feature.build(testHost(), v.parse(mailpushSection.schema, { ...NEEDED, ...section })).channels?.map((channel) => channel.missingConfig)
  expect(lacks({})).toEqual(['oauth_token or refresh_token'])
  expect(lacks({ oauth_token: 't' })).toEqual([undefined])
  expect(lacks({ client_id: 'c', client_secret: 's', refresh_token: 'r' })).toEqual([undefined])
})

test('requires client_id, client_secret and refresh_token together', () => {
  expect(read({ ...NEEDED, client_id: 'c', client_secret: 's', refresh_token: 'r' }).success).toBe(true)
  const { issues } = read({ ...NEEDED, client_id: 'c', refresh_token: 'r' })
  expect(issues?.map(({ message }) => message)).toEqual([
    'client_id, client_secret and refresh_token belong together: set all three or none of them',
  ])
})

test.each(['mail', 'projects/p', 'projects/p/topics/', 'projects/p/topics/t/x', ' projects/p/topics/t', 'projects/p/subscriptions/s'])(
  'rejects the topic %j and states its format',
  (topic) => {
    expect(read({ ...NEEDED, topic }).issues?.map(({ message }) => message)).toEqual([
      'Not a topic: it must have the form projects/<project>/topics/<topic>',
    ])
  },
)

test.each(['*', 'ada@example.com', ' Ada@Example.com ', 'example.com', '@example.com', 'localhost'])(
  'accepts %j as an allowed sender',
  (entry) => {
    expect(read({ ...NEEDED, allowed_senders: [entry] }).success).toBe(true)
  },
)

test.each(['', 'Ada <ada@example.com>', 'ada@@example.com', '@', 'ada@example.com, bob@example.com'])(
  'rejects %j as an allowed sender, because it can never match',
  (entry) => {
    expect(read({ ...NEEDED, allowed_senders: [entry] }).issues?.[0]?.message).toContain(
      `${JSON.stringify(entry)} can never match a sender`,
    )
  },
)

test.each<[what: string, section: object]>([
  ['no topic', { enabled: true }],
  ['an empty topic', { ...NEEDED, topic: '' }],
  ['a webhook_url that is not a URL', { ...NEEDED, webhook_url: 'gw.example.com' }],
  ['a URL that is not http or https', { ...NEEDED, api_url: 'file:///etc/passwd' }],
  ['a service_account without webhook_url', { ...NEEDED, service_account: 'a@b.c' }],
  ['a refresh_token without its client', { ...NEEDED, refresh_token: 'r' }],
  ['a refresh_token without client_secret', { ...NEEDED, refresh_token: 'r', client_id: 'c' }],
  ['a client without its refresh_token', { ...NEEDED, client_id: 'c', client_secret: 's' }],
  ['a client_id alone', { ...NEEDED, client_id: 'c' }],
  ['a client_secret alone', { ...NEEDED, client_secret: 's' }],
  ['an empty label', { ...NEEDED, label_filter: [''] }],
])('rejects %s', (_, section) => {
  expect(read(section).success).toBe(false)
})
