import { createHmac } from 'node:crypto'
import type { AppError, Raw } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { beforeAll, describe, expect, test } from 'vitest'
import { mailpushSection } from './config.ts'
import { pushOptions } from './push-options.ts'
import { createPushKeys, encodeJson, type PushClaims } from './testing/fake-push.ts'
import { createVerification } from './webhook.ts'

const SECRET = 'mailpush-secret-01'
const URL_REGISTERED = 'https://gw.example.com/webhook/mailpush'
const ACCOUNT = 'push@project.iam.example.com'
const GOOD: PushClaims = { aud: URL_REGISTERED, email: ACCOUNT }
const OIDC = { webhook_url: URL_REGISTERED, service_account: ACCOUNT }
const MINUTE_MS = 60_000

const keys = createPushKeys()
beforeAll(() => void keys.jwks())

const raw = (authorization?: string, query = ''): Raw => ({
  headers: { authorization },
  url: new URL(`http://localhost/webhook/mailpush${query}`),
  body: new Uint8Array(),
  receivedAtMs: 0,
})

/** Creates the check of a section, and counts its requests for keys. */
const arrange = (config: object, answer: () => Response = () => Response.json(keys.jwks())) => {
  const requests = { count: 0 }
  const host = testHost({
    fetch: async () => {
      requests.count++
      return answer()
    },
  })
  const section = v.parse(mailpushSection.schema, { enabled: true, topic: 'projects/p/topics/t', ...config })
  const { verify, unsigned } = createVerification(pushOptions(host, section))
  /** Returns what verified a push, or the cause of its rejection. */
  const outcome = async (authorization?: string, query?: string): Promise<string> => {
    try {
      return (await verify(raw(authorization, query))).by
    } catch (error) {
      expect(error).toMatchObject({ name: 'AppError', code: 'unauthorized', message: 'Unauthorized' })
      return String((error as AppError).cause)
    }
  }
  const bearer = (claims: PushClaims) => `Bearer ${keys.mint(claims, host.clock.nowMs())}`
  return { host, requests, unsigned, outcome, bearer }
}

describe('the shared secret', () => {
  const { outcome } = arrange({ webhook_secret: ` ${SECRET}\n` })

  test.each([`Bearer ${SECRET}`, `bearer ${SECRET}`, `BEARER  ${SECRET} `])('accepts the header %j', async (authorization) => {
    expect(await outcome(authorization)).toBe('the bearer')
  })

  test.each([
    undefined,
    '',
    'Bearer ',
    'Bearer',
    'Bearer mailpush-secret-02',
    `Basic ${SECRET}`,
    SECRET,
    `Bearer ${SECRET}, Bearer ${SECRET}`,
    `Bearer ${SECRET} ${SECRET}`,
  ])('rejects the header %j', async (authorization) => {
    expect(await outcome(authorization)).toBe('neither bearer nor ?token= is webhook_secret')
  })

  test('accepts the secret once in the URL', async () => {
    expect(await outcome(undefined, `?token=${SECRET}`)).toBe('?token=')
    expect(await outcome('Bearer something-else', `?token=${SECRET}`)).toBe('?token=')
    for (const query of ['?token=', '?token=mailpush-secret-02', `?token=${SECRET}&token=x`, `?Token=${SECRET}`]) {
      expect(await outcome(undefined, query)).toMatch(/^neither/)
    }
  })

  test('treats a secret of white space as absent', async () => {
    const { unsigned, outcome: open } = arrange({ webhook_secret: ' \t' })
    expect(unsigned).toBe('webhook_secret')
    expect(await open()).toBe('nothing: webhook_secret is not set')
    expect(await open('Bearer ')).toBe('nothing: webhook_secret is not set')
  })
})

describe('the signed token of the push service', () => {
  test('accepts a valid token, with or without a configured secret', async () => {
    for (const config of [OIDC, { ...OIDC, webhook_secret: SECRET }]) {
      const { outcome, bearer, unsigned } = arrange(config)
      expect(unsigned).toBeUndefined()
      expect(await outcome(bearer(GOOD))).toBe('the signed token')
      expect(await outcome()).toMatch(/^neither/)
    }
    expect(await arrange({ ...OIDC, webhook_secret: SECRET }).outcome(`Bearer ${SECRET}`)).toBe('the bearer')
  })

  test.each<[what: string, claims: Partial<PushClaims>, why: RegExp]>([
    ['for another URL', { aud: 'https://evil.example/webhook/mailpush' }, /"aud"/],
    ['of another account', { email: 'other@project.iam.example.com' }, /service_account/],
    ['with an unverified address', { email_verified: false }, /service_account/],
    ['of another issuer', { iss: 'https://evil.example' }, /"iss"/],
    ['from long ago', { iat: 1_767_200_000, exp: 1_767_203_600 }, /"exp"/],
  ])('rejects a token %s', async (_, claims, why) => {
    const { outcome, bearer } = arrange(OIDC)
    expect(await outcome(bearer({ ...GOOD, ...claims }))).toMatch(why)
  })

  test('accepts an expired token for five minutes, because clocks differ', async () => {
    const { outcome, bearer, host } = arrange(OIDC)
    const token = bearer(GOOD)
    await host.advance(65 * MINUTE_MS - 1000)
    expect(await outcome(token)).toBe('the signed token')
    await host.advance(2000)
    expect(await outcome(token)).toMatch(/"exp"/)
  })

  test('accepts a token from a clock that is up to five minutes ahead', async () => {
    const { outcome, bearer, host } = arrange(OIDC)
    const secs = host.clock.nowMs() / 1000
    const from = (nbf: number) => bearer({ ...GOOD, nbf, iat: nbf, exp: nbf + 3600 } as PushClaims)
    expect(await outcome(from(secs + 299))).toBe('the signed token')
    expect(await outcome(from(secs + 301))).toMatch(/"nbf"/)
  })

  test.each(['https://accounts.google.com', 'accounts.google.com'])('accepts the issuer %s', async (iss) => {
    const { outcome, bearer } = arrange(OIDC)
    expect(await outcome(bearer({ ...GOOD, iss }))).toBe('the signed token')
  })

  test('rejects other algorithms, among them none and HS256 with the public key', async () => {
    const { outcome, bearer, requests } = arrange(OIDC)
    const [, payload = ''] = bearer(GOOD).split('.')
    const unsigned = `${encodeJson({ alg: 'none', typ: 'JWT' })}.${payload}`
    const forged = `${encodeJson({ alg: 'HS256', kid: 'key-1', typ: 'JWT' })}.${payload}`
    const mac = createHmac('sha256', keys.publicPem()).update(forged).digest('base64url')
    for (const token of [`${unsigned}.`, unsigned, `${forged}.${mac}`])
      expect(await outcome(`Bearer ${token}`)).toMatch(/^the token is not valid/)
    expect(requests.count).toBe(0)
  })

  test('rejects a changed token and one signed by another key with the same id', async () => {
    const { outcome, bearer } = arrange(OIDC)
    const token = bearer(GOOD)
    expect(await outcome(token.replace(/\.[^.]+\./, `.${encodeJson({ ...GOOD, iss: 'https://accounts.google.com', exp: 9e9 })}.`))).toMatch(
      /signature/,
    )
    const stranger = createPushKeys()
    stranger.jwks()
    expect(await outcome(`Bearer ${stranger.mint(GOOD, Date.UTC(2026, 0, 1))}`)).toMatch(/signature/)
  })

  test('does not quote the token in the cause', async () => {
    const { outcome, bearer } = arrange(OIDC)
    const token = bearer({ ...GOOD, aud: 'https://secret-audience.example' })
    const cause = await outcome(token)
    for (const part of [...token.split('.'), 'secret-audience']) expect(cause).not.toContain(part)
  })

  test('accepts no token without webhook_url and service_account', async () => {
    const { outcome, bearer, requests } = arrange({ webhook_url: URL_REGISTERED, webhook_secret: SECRET })
    expect(await outcome(bearer(GOOD))).toMatch(/^neither/)
    expect(requests.count).toBe(0)
    expect(arrange({ webhook_url: URL_REGISTERED }).unsigned).toBe('webhook_secret')
    const alone = { enabled: true, topic: 'projects/p/topics/t', service_account: ACCOUNT }
    expect(v.safeParse(mailpushSection.schema, alone).success).toBe(false)
  })
})

describe('the keys of the push service', () => {
  test('are fetched with the first token, once for concurrent checks, and kept for an hour', async () => {
    const { outcome, bearer, requests, host } = arrange(OIDC)
    expect(requests.count).toBe(0)
    await Promise.all([outcome(bearer(GOOD)), outcome(bearer(GOOD)), outcome(bearer(GOOD))])
    await host.advance(59 * MINUTE_MS)
    await outcome(bearer(GOOD))
    expect(requests.count).toBe(1)
    await host.advance(MINUTE_MS)
    await outcome(bearer(GOOD))
    expect(requests.count).toBe(2)
  })

  test('are fetched again for an unknown key, at most every five minutes', async () => {
    const theirs = createPushKeys()
    const { outcome, requests, host } = arrange(OIDC, () => Response.json(theirs.jwks()))
    const token = () => `Bearer ${theirs.mint(GOOD, host.clock.nowMs())}`
    expect(await outcome(token())).toBe('the signed token')
    theirs.rotate()
    for (let count = 0; count < 10; count++) expect(await outcome(token())).toMatch(/no applicable key/)
    expect(requests.count).toBe(1)
    await host.advance(5 * MINUTE_MS)
    expect(await outcome(token())).toBe('the signed token')
    expect(requests.count).toBe(2)
  })

  test('that cannot be fetched verify no token and are not requested each time', async () => {
    let up = false
    const { outcome, bearer, requests, host } = arrange(OIDC, () => (up ? Response.json(keys.jwks()) : new Response('', { status: 503 })))
    for (let count = 0; count < 10; count++)
      expect(await outcome(bearer(GOOD))).toMatch(/^the token could not be checked: the key server answered 503/)
    expect(requests.count).toBe(1)
    up = true
    await host.advance(10_000)
    expect(await outcome(bearer(GOOD))).toBe('the signed token')
  })

  test('stay valid while the key server fails', async () => {
    let up = true
    const { outcome, bearer, host } = arrange(OIDC, () => (up ? Response.json(keys.jwks()) : new Response('', { status: 500 })))
    await outcome(bearer(GOOD))
    up = false
    await host.advance(3 * 60 * MINUTE_MS)
    expect(await outcome(bearer(GOOD))).toBe('the signed token')
  })

  test.each(['{', '{}', '{"keys":{}}', 'null'])('the body %j contains no keys', async (body) => {
    const { outcome, bearer } = arrange(OIDC, () => new Response(body))
    expect(await outcome(bearer(GOOD))).toMatch(/^the token (?:could not be checked|is not valid)/)
  })
})
