/** Test vectors of incoming requests, made with a reference implementation of HMAC, and variants that must be rejected. */
import { readFileSync } from 'node:fs'
import { AppError, type Raw, Secret, sha256Hex, type Verified } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { serverOf } from './server.ts'
import { verify } from './webhook.ts'

const SECRET = 'roomchat-webhook-secret-01'
const RANDOM = 'Zm9vYmFyMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1'
const SIGNATURE = '2fad718b764a37b8f99f6c3b0397a87b4aff4b718964e159d25803b9fc272fef'
const BODY: string = JSON.parse(readFileSync(new URL('../fixtures/message.json', import.meta.url), 'utf8')).body

const DOCUMENTED = { 'x-roomchat-random': RANDOM, 'x-roomchat-signature': SIGNATURE }
const REAL = { 'x-nextcloud-talk-random': RANDOM, 'x-nextcloud-talk-signature': SIGNATURE }

const serverWith = (secret: string, backend_url?: string) =>
  serverOf(
    {
      enabled: true,
      base_url: 'https://cloud.example/talk/',
      ...(backend_url !== undefined && { backend_url }),
      app_token: new Secret('token'),
      bot_name: '',
      ack_reactions: true,
      webhook_secret: new Secret(secret),
      allowed_users: [],
    },
    fetch,
  )

interface Attempt {
  readonly secret?: string
  readonly body?: string
  readonly backendUrl?: string
}

const attempt = (headers: Raw['headers'], { secret = SECRET, body = BODY, backendUrl }: Attempt = {}): Verified | unknown => {
  try {
    const raw = { headers, body: new TextEncoder().encode(body), url: new URL('http://localhost/roomchat'), receivedAtMs: 0 }
    const server = serverWith(secret, backendUrl)
    return verify(raw, { secret: server.secret?.reveal().trim() ?? '', backends: server.backends })
  } catch (error) {
    return error
  }
}
const reasonOf = (headers: Raw['headers'], body?: string): unknown => {
  const error = attempt(headers, body === undefined ? {} : { body })
  expect(error).toBeInstanceOf(AppError)
  expect(error).toMatchObject({ code: 'unauthorized', message: 'Invalid signature' })
  return (error as AppError).cause
}

test('the test body is the signed one', () => {
  expect(new TextEncoder().encode(BODY)).toHaveLength(269)
  expect(sha256Hex(BODY)).toMatch(/^8fbd600e06013999/)
})

describe('verify accepts', () => {
  test('the documented headers', () => {
    expect(attempt(DOCUMENTED)).toEqual({ by: 'x-roomchat-signature', nonce: RANDOM })
  })

  test('the headers that real servers send', () => {
    expect(attempt(REAL)).toEqual({ by: 'x-nextcloud-talk-signature', nonce: RANDOM })
  })

  test('upper case, blanks around the signature, and sha256=', () => {
    for (const signature of [SIGNATURE.toUpperCase(), ` ${SIGNATURE} `, `sha256=${SIGNATURE}`]) {
      expect(attempt({ 'x-roomchat-random': ` ${RANDOM} `, 'x-roomchat-signature': signature })).toMatchObject({ nonce: RANDOM })
    }
  })

  test('a secret with blanks around it', () => {
    expect(attempt(DOCUMENTED, { secret: ` ${SECRET}\n` })).toMatchObject({ nonce: RANDOM })
  })

  test('a backend that is another spelling of base_url', () => {
    for (const backend of ['https://cloud.example/talk', 'HTTPS://Cloud.Example:443/talk//']) {
      expect(attempt({ ...REAL, 'x-nextcloud-talk-backend': backend })).toMatchObject({ nonce: RANDOM })
    }
  })

  test('a backend that is backend_url or base_url', () => {
    for (const backend of ['https://internal.example/', 'https://INTERNAL.example:443', 'https://cloud.example/talk']) {
      const headers = { ...REAL, 'x-nextcloud-talk-backend': backend }
      expect(attempt(headers, { backendUrl: 'https://internal.example' })).toMatchObject({ nonce: RANDOM })
    }
    expect(
      attempt({ ...REAL, 'x-nextcloud-talk-backend': 'https://other.example' }, { backendUrl: 'https://internal.example' }),
    ).toMatchObject({
      code: 'unauthorized',
    })
  })

  test('every request without a secret or with a blank one', () => {
    for (const secret of ['', '  ']) {
      expect(attempt({}, { secret })).toEqual({ by: 'nothing: webhook_secret is not set' })
    }
  })
})

describe('verify rejects, with one message and a cause for the log,', () => {
  test('a signature over body and random value in the wrong order', () => {
    const wrong = '706156f2571e1a2948abc7357039d29fdee43a9c70c8fb2fa2a0377a8ac6f435'
    expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-signature': wrong })).toContain('does not match the body')
  })

  test('a missing, empty or short random value', () => {
    expect(reasonOf({ 'x-roomchat-signature': SIGNATURE })).toBe('x-roomchat-random is missing')
    expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-random': ' ' })).toBe('x-roomchat-random is missing')
    for (const random of [RANDOM.slice(0, 31), RANDOM.repeat(3), `${RANDOM}é`, `${RANDOM}, ${RANDOM}`]) {
      expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-random': random })).toBe(
        'x-roomchat-random is not a random value of 32 characters or more',
      )
    }
  })

  test('a missing, malformed or repeated signature', () => {
    expect(reasonOf({ 'x-roomchat-random': RANDOM })).toBe('x-roomchat-signature is missing')
    const shapes = [SIGNATURE.slice(1), `${SIGNATURE}0`, `sha256=sha256=${SIGNATURE}`, `sha1=${SIGNATURE}`, `${SIGNATURE}, ${SIGNATURE}`]
    for (const signature of shapes)
      expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-signature': signature })).toContain('does not match the body')
  })

  test('bytes moved between the random value and the body', () => {
    expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-random': `${RANDOM}{` }, BODY.slice(1))).toContain('is not a random value')
    expect(reasonOf({ ...DOCUMENTED, 'x-roomchat-random': RANDOM.slice(0, 31) }, RANDOM.slice(31) + BODY)).toContain(
      'is not a random value',
    )
  })

  test('wrong documented headers, without falling back to the others', () => {
    expect(reasonOf({ ...REAL, 'x-roomchat-signature': '0'.repeat(64) })).toContain('x-roomchat-signature does not match')
    expect(reasonOf({ ...REAL, 'x-roomchat-random': '' })).toBe('x-roomchat-random is missing')
  })

  test('a backend that is another server, and names both in the cause', () => {
    for (const backend of ['https://cloud.example', 'http://cloud.example/talk', 'https://evil.example/talk', '/', '']) {
      const reason = reasonOf({ ...REAL, 'x-nextcloud-talk-backend': backend })
      expect(reason).toContain(`x-nextcloud-talk-backend is ${backend} and not https://cloud.example/talk; `)
    }
    expect(String(reasonOf({ ...REAL, 'x-roomchat-backend': `https://${'x'.repeat(9999)}` })).length).toBeLessThan(400)
  })
})
