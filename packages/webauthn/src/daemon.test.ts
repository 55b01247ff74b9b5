import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthenticator } from './testing/authenticator.ts'
import { type PasskeyDaemon, startPasskeys } from './testing/daemon.ts'

let gateway: PasskeyDaemon
beforeAll(async () => {
  gateway = await startPasskeys()
})
afterAll(() => gateway?.stop())

const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const register = async (user: string) => {
  const headers = { authorization: `Bearer ${await gateway.pair()}` }
  const { body } = await post('/api/webauthn/register/start', { user_id: user, user_name: user }, headers)
  const made = createAuthenticator().register(body, { clientData: (data) => ({ ...data, origin: gateway.origin }) })
  expect(await post('/api/webauthn/register/finish', made, headers)).toMatchObject({ status: 200 })
}

describe('passkeys of a daemon', () => {
  test('stores passkeys encrypted', async () => {
    await register('alice')
    const store =
      readFileSync(join(gateway.dataDir, 'sluice.db')).toString('latin1') +
      readFileSync(join(gateway.dataDir, 'sluice.db-wal')).toString('latin1')
    expect(store).toContain('secret:webauthn')
    expect(store).not.toContain('publicKey')
  })

  test('answers 429 with retry_after after too many challenges', async () => {
    const start = () => fetch(`${gateway.url}/passkey/start`, { method: 'POST' })
    for (let call = 0; call < 31; call++) await (await start()).arrayBuffer()
    const response = await start()
    expect(response.status).toBe(429)
    expect(await response.json()).toEqual({ error: 'Too Many Requests', code: 'rate_limited', retry_after: expect.any(Number) })
  })

  test('answers 403 to a page of another origin', async () => {
    const response = await fetch(`${gateway.url}/passkey/finish`, { method: 'POST', headers: { origin: 'https://evil.test' }, body: '{}' })
    expect(response.status).toBe(403)
  })

  test('answers 401 to a request without a token', async () => {
    for (const [method, path] of [
      ['POST', 'register/start'],
      ['POST', 'register/finish'],
      ['POST', 'auth/start'],
      ['POST', 'auth/finish'],
      ['GET', 'credentials?user_id=alice'],
      ['DELETE', 'credentials/abc?user_id=alice'],
    ] as const) {
      expect((await fetch(`${gateway.url}/api/webauthn/${path}`, { method })).status).toBe(401)
    }
  })

  test('lets a client only sign in, not register, list or delete', async () => {
    const authorization = `Bearer ${await gateway.pair('client')}`
    for (const [method, path, status] of [
      ['POST', 'register/start', 403],
      ['POST', 'register/finish', 403],
      ['POST', 'auth/start', 400],
      ['POST', 'auth/finish', 400],
      ['GET', 'credentials?user_id=alice', 403],
      ['DELETE', 'credentials/abc?user_id=alice', 403],
    ] as const) {
      const response = await fetch(`${gateway.url}/api/webauthn/${path}`, { method, headers: { authorization } })
      expect(response.status, path).toBe(status)
    }
  })

  test('answers 404 while disabled, and keeps the registered passkeys', async () => {
    await register('bob')
    await gateway.enable(false)
    for (const [method, path] of [
      ['GET', '/passkey'],
      ['POST', '/passkey/start'],
      ['POST', '/api/webauthn/auth/start'],
    ] as const) {
      const response = await fetch(`${gateway.url}${path}`, { method })
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ code: 'not_found', error: expect.stringContaining('webauthn is not configured') })
    }
    await gateway.enable(true)
    const headers = { authorization: `Bearer ${await gateway.pair()}` }
    const response = await fetch(`${gateway.url}/api/webauthn/credentials?user_id=bob`, { headers })
    expect(await response.json()).toMatchObject({ credentials: [{ label: 'Hardware Key' }] })
  })
})
