/** TLS, STARTTLS and access tokens, on the fake. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { systemClock } from '@sluice/kit'
import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Imap } from './imap.ts'
import { type Bench, startBench } from './testing/bench.ts'

const NEVER = new AbortController().signal
const read = (name: string): string => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')
const keys = { key: read('localhost-key.pem'), cert: read('localhost-cert.pem') }
const trusted = getCACertificates()
const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 10 })
const closing: (() => Promise<void> | void)[] = []

beforeAll(() => setDefaultCACertificates([...trusted, keys.cert]))
afterAll(() => setDefaultCACertificates(trusted))
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const open = async (...args: Parameters<typeof startBench>): Promise<Bench> => {
  const bench = await startBench(...args)
  closing.push(() => bench.close())
  return bench
}

describe.each(['tls', 'starttls'] as const)('%s', (security) => {
  const section = { imap_host: 'localhost', imap_security: security, smtp_host: 'localhost', smtp_security: security }

  test('encrypts both directions', async () => {
    const { fake, listen } = await open({ security, keys })
    const { channel, received, listening } = listen(section)
    await soon(() => expect(listening.health.state).toBe('ok'))
    fake.write({ text: 'hello' })
    await soon(() => expect(received).toHaveLength(1))
    const [mail] = received
    if (mail) await channel.send(mail.to, { text: 'answer', clientId: 'c' }, NEVER)
    expect(fake.accepted).toHaveLength(1)
  })

  test('sends no password to a server with another name', async () => {
    const { fake, channel, listen } = await open({ security, keys })
    const names = { ...section, imap_host: '127.0.0.1', smtp_host: '127.0.0.1' }
    const { listening } = listen(names)
    await soon(() => expect(listening.health.detail).toMatch(/does not match/))
    await expect(channel(names).send({ to: 'ada@example.com' }, { text: 'x', clientId: 'c' }, NEVER)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/does not match/),
    })
    expect(fake.imap.commands).not.toContain('AUTHENTICATE')
    expect(fake.accepted).toEqual([])
  })

  test('accepts any certificate with verify_tls = false', async () => {
    const { listen } = await open({ security, keys })
    const { listening } = listen({ ...section, imap_host: '127.0.0.1', verify_tls: false })
    await soon(() => expect(listening.health.state).toBe('ok'))
  })
})

test('without STARTTLS nothing is said', async () => {
  const { fake, channel, listen } = await open()
  const section = { imap_host: 'localhost', imap_security: 'starttls', smtp_host: 'localhost', smtp_security: 'starttls' }
  const { listening } = listen(section)
  await soon(() => expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('refuses STARTTLS') }))
  await expect(channel(section).send({ to: 'ada@example.com' }, { text: 'x', clientId: 'c' }, NEVER)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('does not offer STARTTLS'),
  })
  expect(fake.imap.commands).not.toContain('AUTHENTICATE')
})

test.each([
  [
    'data before the encryption',
    '* OK ready\r\n',
    'A1 OK go on\r\n* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n* OK [CAPA',
    /before the encryption/,
  ],
  ['a login that came from nowhere', '* PREAUTH welcome\r\n', '', /does not let the connection be encrypted/],
  ['a refusal', '* BYE too many connections\r\n', '', /refuses the connection/],
])('STARTTLS ends at %s', async (_, greeting, answer, message) => {
  const server = createServer((socket) => {
    socket.write(greeting)
    socket.on('data', () => socket.write(answer))
    socket.on('error', () => undefined)
    closing.push(() => void socket.destroy())
  })
  const { port, close } = await listenOnLoopback(server)
  closing.push(close)
  const options = {
    server: { host: 'localhost', port, security: 'starttls', verifyTls: true },
    clock: systemClock,
    bytesMax: 1000,
  } as const
  await expect(Imap.open(options, NEVER)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) })
})

describe('access tokens', () => {
  const startTokens = async (token: () => string) => {
    const requests: URLSearchParams[] = []
    const fake = await startFakeProvider(({ body }) => {
      const form = new URLSearchParams(body.toString())
      requests.push(form)
      if (form.get('refresh_token')?.startsWith('spent'))
        return { status: 400, body: { error: 'invalid_grant', error_description: 'Token has been revoked' } }
      return { status: 200, body: { access_token: token(), expires_in: 3600 } }
    })
    closing.push(() => fake.close())
    const section = {
      password: undefined,
      client_id: 'client-01',
      client_secret: 'client-secret-01',
      refresh_token: 'refresh-token-01',
      token_url: `${fake.url}/token`,
      oauth_scope: 'mail',
    }
    return { requests, section }
  }

  test('log in to both servers, and are renewed when a server refuses one', async () => {
    let number = 0
    const { requests, section } = await startTokens(() => `access-token-${++number}`)
    const bench = await open({ token: 'access-token-2' })
    const { listening, channel } = bench.listen(section)
    await soon(() => expect(listening.health.state).toBe('ok'))
    expect(requests).toHaveLength(2)
    expect(Object.fromEntries(requests[0] ?? [])).toEqual({
      grant_type: 'refresh_token',
      client_id: 'client-01',
      client_secret: 'client-secret-01',
      refresh_token: 'refresh-token-01',
      scope: 'mail',
    })
    await channel.send({ to: 'ada@example.com' }, { text: 'x', clientId: 'c' }, NEVER)
    expect(requests).toHaveLength(2)
    expect(JSON.stringify(bench.host.logs)).not.toMatch(/access-token|refresh-token|client-secret/)
  })

  test('that are refused again need the operator', async () => {
    const { section } = await startTokens(() => 'access-token-of-another')
    const bench = await open({ token: 'access-token-1' })
    const { listening } = bench.listen(section)
    await soon(() => expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('is the token valid?') }))
    await expect(bench.channel(section).send({ to: 'ada@example.com' }, { text: 'x', clientId: 'c' }, NEVER)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('refuses the login'),
    })
  })

  test('that are not issued are shown with the reason', async () => {
    const { section } = await startTokens(() => 'x')
    const { listening } = (await open({ token: 'x' })).listen({ ...section, refresh_token: 'spent-token-01' })
    await soon(() => expect(listening.health.detail).toMatch(/invalid_grant: Token has been revoked/))
    expect((listening.retryAtMs ?? 0) - systemClock.monotonicMs()).toBeGreaterThan(600_000)
  })
})
