import { problemLine } from '@sluice/config'
import { SENDER_SCHEMES } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { sop as procedure } from '../testing/samples.ts'
import { parseSopToml } from './parse-sop-toml.ts'
import { AUTHS } from './trigger-auth.ts'
import { TriggerIndex } from './trigger-index.ts'

const HEAD = '[sop]\nname = "deploy"\ndescription = "Ship it"\n'

const read = (keys: string) =>
  parseSopToml(`${HEAD}[[triggers]]\ntype = "webhook"\npath = "/in"\n${keys}`, 'SOP.toml', Date.UTC(2026, 2, 1))

async function triggerOf(keys: string) {
  const { value, problems } = await read(keys)
  expect(problems).toEqual([])
  return value?.triggers[0] ?? expect.fail()
}

const messageOf = async (keys: string) => (await read(keys)).problems.map((problem) => problemLine(problem).replace(/^[^`]*/, ''))

describe('the authentication of a webhook trigger', () => {
  test('is a bearer token by default', async () => {
    expect(await triggerOf('')).toEqual({ type: 'webhook', path: '/in', condition: null })
    expect(await triggerOf('auth = "bearer"\nmax_body = 1000')).toEqual({
      type: 'webhook',
      path: '/in',
      condition: null,
      bodyBytesMax: 1000,
    })
  })

  test.each(Object.entries(SENDER_SCHEMES))('is the scheme of %s', async (name, scheme) => {
    expect(await triggerOf(`auth = "${name}"\nsecret = "s"`)).toMatchObject({ auth: { name, scheme, secrets: ['s'], windowSecs: 300 } })
  })

  test('names the first requests that are answered', async () => {
    expect(await triggerOf('auth = "github"\nsecret = "s"\nhandshake = "head"')).toMatchObject({ auth: { handshakes: ['head'] } })
    expect(await triggerOf('auth = "hmac"\nheader = "X"\nsecret = "s"\nhandshake = []')).toMatchObject({ auth: { handshakes: [] } })
    expect(await messageOf('handshake = "head"')).toEqual([expect.stringContaining('does not take this key')])
    expect(await messageOf('auth = "github"\nsecret = "s"\nhandshake = "ping"')).toHaveLength(1)
  })

  test('takes several secrets', async () => {
    expect(await triggerOf('auth = "github"\nsecret = ["new", "old"]')).toMatchObject({ auth: { secrets: ['new', 'old'] } })
  })

  test('expresses every HMAC of a sender with keys', async () => {
    const keys = {
      header: 'Stripe-Signature',
      prefix: 'v1=',
      separator: ',',
      payload: '{timestamp}.{body}',
      timestamp_item: 't=',
      delivery_member: 'id',
      replay_window_secs: 60,
    }
    const lines = Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    const trigger = await triggerOf(['auth = "hmac"', 'secret = "s"', ...lines].join('\n'))
    // Only a name says which event of a sender is a test.
    const { testEvent: _, ...scheme } = SENDER_SCHEMES.stripe
    expect(trigger).toMatchObject({ auth: { scheme, windowSecs: 60 } })
  })

  test('is a token, a password or a parameter', async () => {
    expect(await triggerOf('auth = "token"\nsecret = "s"\nheader = "X-Token"')).toMatchObject({
      auth: { scheme: { kind: 'token', header: 'x-token' } },
    })
    expect(await triggerOf('auth = "basic"\nsecret = "s"\nusername = "grafana"')).toMatchObject({
      auth: { scheme: { kind: 'basic', username: 'grafana' } },
    })
    expect(await triggerOf('auth = "query"\nsecret = "s"')).toMatchObject({ auth: { scheme: { kind: 'query', parameter: 'token' } } })
  })

  test.each([
    ['5MB', 5_000_000],
    ['512 KiB', 524_288],
    [26_214_400, 26_214_400],
  ])('takes bodies of %s', async (size, bytes) => {
    expect(await triggerOf(`max_body = ${JSON.stringify(size)}`)).toMatchObject({ bodyBytesMax: bytes })
  })

  test.each([
    ['auth = "github"', '`triggers[0].auth`: auth = "github" needs `secret`, the name of a secret in [sop.secrets]'],
    ['secret = "s"', '`triggers[0].secret`: auth = "bearer" does not take this key'],
    ['auth = "github"\nsecret = "s"\nreplay_window_secs = 5', '`triggers[0].replay_window_secs`: auth = "github" does not take this key'],
    ['auth = "hmac"\nsecret = "s"', '`triggers[0].auth`: auth = "hmac" needs `header`'],
    ['auth = "hmac"\nsecret = "s"\nheader = "x"\npayload = "{id}"', '`triggers[0].payload`: the signature must cover {body}'],
    ['auth = "hmac"\nsecret = "s"\nheader = "x"\npayload = "{body}{id}"', '`triggers[0].payload`: {id} needs `delivery_header`'],
    [
      'auth = "hmac"\nsecret = "s"\nheader = "x"\ntimestamp_header = "y"',
      '`triggers[0].timestamp_header`: the signature does not cover the time; add {timestamp} to `payload`',
    ],
    [
      'auth = "hmac"\nsecret = "s"\nheader = "x"\npayload = "{body}{host}"',
      '`triggers[0].payload`: {host} is no part of a request; use {body}, {timestamp}, {id}, {url} and {form}',
    ],
    ['auth = "github"\nsecret = "s"\nrole = "client"', '`triggers[0].role`: auth = "github" does not take this key'],
    ['max_body = "26MiB"', '`triggers[0].max_body`: must be a number of bytes or a size such as "512KB", up to 25MiB'],
  ])('%j is a mistake', async (keys, message) => {
    expect(await messageOf(keys)).toEqual([message])
  })

  test('goes without one with the lowest role that starts the procedure', async () => {
    expect(await triggerOf('role = "client"')).toEqual({ type: 'webhook', path: '/in', condition: null, role: 'client' })
    expect((await messageOf('role = "admin"'))[0]).toContain('`triggers[0].role`')
  })

  test('is one of a known list', async () => {
    expect((await messageOf('auth = "gitub"\nsecret = "s"'))[0]).toContain('`triggers[0].auth`')
    expect(AUTHS).toContain('github')
  })
})

describe('conditions on headers', () => {
  const event = { source: 'webhook', topic: '/in', payload: '{"ref":"main"}', standing: 'operator' } as const

  async function startsFor(keys: string, headers: Readonly<Record<string, string>>) {
    const index = new TriggerIndex([procedure('deploy', { triggers: [await triggerOf(keys)] })])
    return index.match({ ...event, headers }).length > 0
  }

  test('compare a header whose name is in any case', async () => {
    const keys = `condition = '$header.X-GitHub-Event == "push"'`
    expect(await startsFor(keys, { 'x-github-event': 'push' })).toBe(true)
    expect(await startsFor(keys, { 'x-github-event': 'ping' })).toBe(false)
    expect(await startsFor(keys, {})).toBe(false)
  })

  test('of a list must all hold', async () => {
    const keys = `condition = ['$header.X-Event == push', '$.ref == main']`
    expect(await startsFor(keys, { 'x-event': 'push' })).toBe(true)
    expect(await startsFor(keys, { 'x-event': 'pull' })).toBe(false)
    expect(await startsFor(keys.replace('main', 'other'), { 'x-event': 'push' })).toBe(false)
  })

  test('cannot name a header with a credential', async () => {
    expect((await messageOf(`condition = '$header.Authorization == x'`))[0]).toContain('is a credential')
  })
})

describe('the index', () => {
  test('matches a trigger only if its own authentication is verified', async () => {
    const bearer = await triggerOf('')
    const github = await triggerOf('auth = "github"\nsecret = "s"\nmax_body = 10')
    const auth = (github.type === 'webhook' && github.auth) || expect.fail()
    const index = new TriggerIndex([procedure('a', { triggers: [bearer] }), procedure('b', { triggers: [github] })])
    const event = { source: 'webhook', topic: '/in', payload: null, standing: 'operator' } as const
    const namesFor = (...verified: Parameters<TriggerIndex['match']>[1] & object) =>
      index.match(event, verified.length > 0 ? verified : undefined).map(({ name }) => name)
    expect(namesFor()).toEqual(['a'])
    expect(namesFor(auth)).toEqual(['b'])
    expect(namesFor({ ...auth, secrets: ['other'] })).toEqual([])
    expect(namesFor(undefined, auth)).toEqual(['a', 'b'])
    expect(index.webhooks('/in')).toEqual([
      { role: 'operator', headers: [] },
      { auth, role: 'operator', bodyBytesMax: 10, headers: [] },
    ])
  })
})
