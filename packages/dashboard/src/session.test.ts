import mcp from '@sluice/mcp'
import type { Feature } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import schedule from '@sluice/tool-schedule'
import skills from '@sluice/tool-skills'
import webauthn from '@sluice/webauthn'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type Browser, ORIGIN, testDashboards } from './testing/dashboard-gateway.ts'

const dashboard = testDashboards()
const DAY_MS = 86_400_000

describe('a sign-in link', () => {
  test('signs a browser in once', async () => {
    const { code, browser, store } = dashboard()
    const link = await code()
    const first = browser()
    const answer = await first.signIn(link)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ role: 'operator', device: expect.any(String) })
    expect(first.setCookie).toMatch(/^sluice_session_42617=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/)
    expect((await first.send('GET', '/api/devices')).status).toBe(200)
    expect((await browser().signIn(link)).status).toBe(403)
    expect(await store.devices.list()).toHaveLength(1)
  })

  test('signs one browser in when two use it at the same moment', async () => {
    const { code, browser, store } = dashboard()
    const link = await code()
    const answers = await Promise.all([browser(), browser(), browser()].map((each) => each.signIn(link)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 403, 403])
    expect(await store.devices.list()).toHaveLength(1)
  })

  test('gives a token that no cookie of before can choose', async () => {
    const { code, browser } = dashboard()
    const page = browser()
    page.cookie = 'sluice_session_42617=chosen-by-an-attacker'
    expect((await page.signIn(await code())).status).toBe(200)
    expect(page.cookie).not.toContain('chosen')
    expect((await page.send('GET', '/api/status', { headers: { cookie: 'sluice_session_42617=chosen-by-an-attacker' } })).status).toBe(401)
  })

  test('works for a minute', async () => {
    const { code, browser, clock, host } = dashboard()
    const link = await code()
    await clock.advance(60_000)
    await host.advance(60_000)
    expect((await browser().signIn(link)).status).toBe(403)
  })

  test('has a role', async () => {
    const { signedIn } = dashboard()
    const client = await signedIn({ role: 'client' })
    expect((await client.send('GET', '/api/sessions')).status).toBe(200)
    expect((await client.send('GET', '/api/devices')).status).toBe(403)
  })

  test.each([
    ['a page of another origin', { origin: 'http://localhost:3000' }],
    ['a page without an origin', { origin: 'null' }],
    ['a page that the browser calls foreign', { 'sec-fetch-site': 'cross-site' }],
  ])('is refused to %s, and is still good for the person', async (_, headers) => {
    const { code, browser } = dashboard()
    const link = await code()
    const foreign = await browser().send('POST', '/api/dashboard/sign-in', { body: { code: link }, headers })
    expect(foreign.status).toBe(403)
    expect(foreign.headers.get('set-cookie')).toBeNull()
    expect((await browser().signIn(link)).status).toBe(200)
  })

  test('has the code in its fragment and nowhere else', async () => {
    const { run } = dashboard({ config: { public_url: 'https://example.com/sluice/' } })
    const { lines, warnings } = await run()
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(/^http:\/\/localhost:42617\/#sign-in=[\w-]{43}$/)
    expect(lines[1]).toMatch(/^https:\/\/example\.com\/sluice\/#sign-in=[\w-]{43}$/)
    expect(warnings.join()).toContain('once, within 60 seconds')
    const { lines: json } = await run('--json', '--role', 'client')
    expect(JSON.parse(json.join(''))).toMatchObject({
      url: expect.stringContaining('#sign-in='),
      role: 'client',
      expires_at: expect.any(String),
    })
  })

  test('is a QR code, too', async () => {
    const { run } = dashboard()
    const { lines, warnings } = await run('--qr')
    expect(lines.length).toBeGreaterThan(15)
    expect(lines[5]).toMatch(/^[ ▀▄█]+$/)
    expect(warnings[0]).toContain('A phone cannot reach this address')
  })

  test('is made on the page for another person, with a role, a QR code and a record of who made it', async () => {
    const records: object[] = []
    const audit = async (record: object) => void records.push(record)
    const { signedIn, browser } = dashboard({ config: { public_url: 'https://example.com/sluice' } }, { audit })
    const made = await (await signedIn()).send('POST', '/api/dashboard/links', { body: { role: 'client' } })
    const link = (await made.json()) as { readonly url: string; readonly qr: readonly string[] }
    expect(link).toMatchObject({
      url: expect.stringMatching(/^https:\/\/example\.com\/sluice\/#sign-in=/),
      reachable: true,
      role: 'client',
    })
    expect(link.qr.every((row) => row.length === link.qr.length && /^[01]+$/.test(row))).toBe(true)
    expect(records).toMatchObject([{ kind: 'pairing_code_created', by: expect.stringMatching(/^device:/), detail: { role: 'client' } }])
    expect(JSON.stringify(records)).not.toContain(link.url.split('=')[1])
    const answer = await browser().signIn(link.url.split('#sign-in=')[1] ?? '')
    expect(await answer.json()).toMatchObject({ role: 'client' })
  })

  test('is made on the page for ten minutes, in which another person can open it', async () => {
    const { signedIn, browser, clock, host } = dashboard()
    const operator = await signedIn()
    const make = async () => {
      const made = await operator.send('POST', '/api/dashboard/links', { body: { role: 'client' } })
      const { url, expires_at } = (await made.json()) as { readonly url: string; readonly expires_at: string }
      return { code: url.split('#sign-in=')[1] ?? '', leftMs: Date.parse(expires_at) - clock.nowMs() }
    }
    const pass = async (ms: number) => {
      await clock.advance(ms)
      await host.advance(ms)
    }
    const first = await make()
    const leftMs = first.leftMs
    expect(leftMs).toBe(600_000)
    await pass(leftMs - 1000)
    expect((await browser().signIn(first.code)).status).toBe(200)
    const second = await make()
    await pass(leftMs)
    expect((await browser().signIn(second.code)).status).toBe(403)
  })

  test('is made on the page by operators only, and says when no other device reaches it', async () => {
    const { signedIn, browser } = dashboard()
    const ask = (by: Browser, role = 'operator') => by.send('POST', '/api/dashboard/links', { body: { role } })
    expect((await ask(await signedIn({ role: 'client' }))).status).toBe(403)
    expect((await ask(browser())).status).toBe(401)
    const operator = await signedIn()
    expect((await ask(operator, 'king')).status).toBe(400)
    expect(await (await ask(operator)).json()).toMatchObject({ url: expect.stringContaining('http://localhost:42617/#'), reachable: false })
  })
})

describe('a session', () => {
  test('survives a restart and is not stored in the clear', async () => {
    const { signedIn, file, clock, runtime, store } = dashboard()
    const { cookie } = await signedIn()
    const token = cookie.split('=')[1] ?? ''
    const other = openStore({ file, clock, log: runtime.log })
    const rows = await other.devices.list()
    expect(rows).toMatchObject([{ name: 'dashboard, browser', role: 'operator' }])
    expect(JSON.stringify(rows)).not.toContain(token)
    await other.close()
    expect((await store.devices.list())[0]?.expiresAtMs).toBe(clock.nowMs() + 30 * DAY_MS)
  })

  test('ends when its device is revoked, and the lockout does not count its requests', async () => {
    const { signedIn, store } = dashboard()
    const page = await signedIn()
    const [row] = await store.devices.list()
    await store.devices.revoke(row?.id ?? '')
    for (let request = 0; request < 30; request++) expect((await page.send('GET', '/api/status', { peer: '203.0.113.9' })).status).toBe(401)
  })

  test('ends the streams that it opened', async () => {
    const { signedIn, store, auth, clock } = dashboard()
    const page = await signedIn()
    await page.send('GET', '/api/status')
    const ended: string[] = []
    const stop = auth.onRevoked((hash) => ended.push(hash))
    const [row] = await store.devices.list()
    await store.devices.revoke(row?.id ?? '')
    await clock.advance(1000)
    await expect.poll(() => ended.length).toBe(1)
    stop()
  })

  test('ends by signing out, which keeps the passkeys that it registered', async () => {
    const { signedIn, store } = dashboard()
    const page = await signedIn()
    const { cookie } = page
    const [row] = await store.devices.list()
    const answer = await page.send('DELETE', '/api/dashboard/session')
    expect(answer.status).toBe(200)
    expect(page.setCookie).toContain('sluice_session_42617=; Path=/; Max-Age=0')
    expect((await page.send('GET', '/api/status', { headers: { cookie } })).status).toBe(401)
    expect(await store.devices.revokedAmong([row?.id ?? ''])).toEqual([])
  })

  test('ends 30 days after its last renewal', async () => {
    const { signedIn, clock } = dashboard()
    const page = await signedIn()
    await clock.advance(20 * DAY_MS)
    await page.send('POST', '/api/dashboard/session')
    expect(page.setCookie).toContain('Max-Age=2592000')
    await clock.advance(20 * DAY_MS)
    expect((await page.send('GET', '/api/status')).status).toBe(200)
    await clock.advance(10 * DAY_MS)
    expect((await page.send('GET', '/api/status')).status).toBe(401)
  })

  test('is renewed at most once a day', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    page.setCookie = ''
    expect((await page.send('POST', '/api/dashboard/session')).status).toBe(200)
    expect(page.setCookie).toBe('')
  })

  test('keeps its device when the browser signs in again with the same role', async () => {
    const { signedIn, code, store } = dashboard()
    const page = await signedIn()
    const { cookie } = page
    const before = await store.devices.list()
    await page.signIn(await code())
    expect((await store.devices.list()).map(({ id }) => id)).toEqual(before.map(({ id }) => id))
    expect((await page.send('GET', '/api/status')).status).toBe(200)
    expect((await page.send('GET', '/api/status', { headers: { cookie } })).status).toBe(401)
    await page.signIn(await code('--role', 'client'))
    expect(await store.devices.list()).toMatchObject([{ role: 'client' }])
  })

  test('is not a bearer token, and a bearer token is not a session', async () => {
    const { signedIn, browser, pair } = dashboard()
    const page = await signedIn()
    const token = page.cookie.split('=')[1] ?? ''
    const asBearer = await browser().send('GET', '/api/status', { headers: { authorization: `Bearer ${token}` } })
    expect(asBearer.status).toBe(401)
    const { token: bearer } = await pair()
    const asCookie = await browser().send('GET', '/api/status', { headers: { cookie: `sluice_session_42617=${bearer}` } })
    expect(asCookie.status).toBe(401)
  })

  test('of another port of this host is not looked at', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    const token = page.cookie.split('=')[1] ?? ''
    const named = (cookie: string) => page.send('GET', '/api/status', { headers: { cookie } })
    expect((await named(`sluice_session_3000=${token}`)).status).toBe(401)
    expect((await named(`sluice_session_42617=wrong; theme=dark; sluice_session_42617=${token}`)).status).toBe(200)
  })
})

interface Operation {
  readonly method: string
  readonly path: string
  readonly isForOperators: boolean
}

/** Every route that needs a role, from the list that the application itself has of its routes: a new one cannot be forgotten. */
async function guarded(page: Browser): Promise<Operation[]> {
  const { paths } = (await (await page.send('GET', '/api/openapi.json')).json()) as {
    paths: Record<string, Record<string, { security: { bearer: string[] }[] }>>
  }
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([name, { security }]) =>
      security.length === 0
        ? []
        : [{ method: name.toUpperCase(), path: path.replace(/\{\w+\}/g, 'x'), isForOperators: security.length === 1 }],
    ),
  )
}

/** A dashboard with the routes of features, and no server, no skill and no passkey. */
function withFeatures() {
  const host = testHost({ services: { audit: async () => {} } })
  const features: readonly Feature[] = [mcp, skills, webauthn, schedule]
  const settings = { rp_id: 'localhost', rp_origin: ORIGIN }
  const parts = features.map((feature) =>
    feature.build(host, v.parse(feature.section?.schema ?? v.object({}), feature === webauthn ? { enabled: true, ...settings } : {})),
  )
  return dashboard(
    {},
    {},
    parts.flatMap(({ routes = [] }) => routes),
  )
}

describe('the security table of a session', () => {
  const FOREIGN = [
    ['another port of this machine', 'http://localhost:3000'],
    ['another name of this machine', 'http://127.0.0.1:42617'],
    ['another scheme', 'https://localhost:42617'],
    ['a name that begins like ours', 'http://localhost:42617.evil.example'],
    ['a sandboxed frame', 'null'],
    ['no origin', undefined],
    ['an empty origin', ''],
    ['our origin with a path', `${ORIGIN}/`],
  ] as const

  test.each(FOREIGN)('a change from %s is refused', async (_, origin) => {
    const { signedIn, store } = dashboard()
    const page = await signedIn()
    for (const [method, path] of [
      ['POST', '/api/pairing/initiate'],
      ['DELETE', '/api/dashboard/session'],
      ['POST', '/api/turns'],
    ] as const) {
      const answer = await page.send(method, path, { body: { message: 'x' }, headers: { origin } })
      expect(answer.status).toBe(403)
    }
    expect(await store.devices.list()).toHaveLength(1)
  })

  test('every route needs the cookie, our origin and the header of the page, and its role; no answer may be framed or kept', async () => {
    const { signedIn, browser, store, pair } = withFeatures()
    const [operator, client] = [await signedIn(), await signedIn({ role: 'client' })]
    const { token } = await pair('c', null, 'client')
    const wrong: string[] = []
    const operations = await guarded(operator)
    expect(operations.length).toBeGreaterThan(80)
    for (const { method, path, isForOperators } of operations) {
      const isChange = method !== 'GET'
      const ask = async (page: Browser, headers: Record<string, string | undefined> = {}) => {
        const answer = await page.send(method, path, { ...(isChange && { body: {} }), headers })
        await answer.body?.cancel()
        const { status, headers: got } = answer
        const isGuarded =
          got.get('x-frame-options') === 'DENY' &&
          got.get('content-security-policy')?.includes("frame-ancestors 'none'") &&
          got.get('cache-control') === 'no-store' &&
          got.get('access-control-allow-origin') === null
        return isGuarded ? status : `${status} without its headers`
      }
      const expectStatus = async (expected: number, row: string, page: Browser, headers?: Record<string, string | undefined>) => {
        const status = await ask(page, headers)
        if (status !== expected) wrong.push(`${method} ${path}, ${row}: ${status}`)
      }
      await expectStatus(401, 'no cookie', browser())
      await expectStatus(401, 'a wrong cookie', browser(), { cookie: `sluice_session_42617=${'w'.repeat(43)}` })
      if (isForOperators) await expectStatus(403, 'the cookie of a client', client)
      if (isForOperators) await expectStatus(403, 'the token of a client', browser(), { authorization: `Bearer ${token}` })
      for (const site of ['cross-site', 'same-site']) await expectStatus(403, site, operator, { 'sec-fetch-site': site })
      for (const [name, origin] of isChange ? FOREIGN : []) await expectStatus(403, name, operator, { origin })
      if (isChange) await expectStatus(403, 'no header of the page', operator, { 'x-sluice-dashboard': undefined })
      else await expectStatus(403, 'another port', operator, { origin: 'http://localhost:3000' })
    }
    expect(wrong).toEqual([])
    for (const path of ['/api/cluster', '/api/mcp/servers', '/api/skills', '/api/webauthn/credentials', '/api/schedules', '/api/hardware'])
      expect(operations.map((operation) => operation.path)).toContain(path)
    // Nothing of all that changed anything.
    expect(await store.sops.audit({ limit: 10 })).toEqual([])
    expect(await store.devices.list()).toHaveLength(3)
    // The same requests of an operator's page are admitted.
    const refused: string[] = []
    for (const { method, path } of operations) {
      if (path === '/api/dashboard/session' || path.startsWith('/ws/')) continue
      const answer = await operator.send(method, path, method === 'GET' ? {} : { body: {} })
      await answer.body?.cancel()
      if ([401, 403].includes(answer.status)) refused.push(`${method} ${path}: ${answer.status}`)
    }
    expect(refused).toEqual([])
  })

  test('a change without the header of the page is refused', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    expect((await page.send('POST', '/api/pairing/initiate', { headers: { 'x-sluice-dashboard': undefined } })).status).toBe(403)
    expect((await page.send('POST', '/api/pairing/initiate')).status).toBe(200)
  })

  test.each(['cross-site', 'same-site'])('a browser that says "%s" is refused, also to read', async (site) => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    for (const path of ['/api/status', '/api/events', '/api/sessions'])
      expect((await page.send('GET', path, { headers: { 'sec-fetch-site': site } })).status).toBe(403)
  })

  test('a stream needs the word of the browser or the header of the page', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    const events = async (headers: Record<string, string | undefined>) => (await page.send('GET', '/api/events', { headers })).status
    // Without a socket an admitted subscriber gets 503.
    expect(await events({ 'x-sluice-dashboard': undefined })).toBe(503)
    expect(await events({ 'sec-fetch-site': undefined })).toBe(503)
    expect(await events({ 'sec-fetch-site': undefined, 'x-sluice-dashboard': undefined })).toBe(403)
    expect(await events({ 'sec-fetch-site': 'none' })).toBe(403)
    expect(await events({ origin: 'http://localhost:3000' })).toBe(403)
  })

  test('a WebSocket needs exactly our origin', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    const socket = async (origin: string | undefined) => {
      const headers = { upgrade: 'websocket', connection: 'upgrade', origin, 'x-sluice-dashboard': undefined, 'sec-fetch-site': undefined }
      return (await page.send('GET', '/ws/chat', { headers })).status
    }
    for (const [, origin] of FOREIGN) expect(await socket(origin)).toBe(403)
    // Without a socket an admitted upgrade gets 400.
    expect(await socket(ORIGIN)).toBe(400)
  })

  test('a page on another port cannot put its own session under the one of a person', async () => {
    const { signedIn, code, store } = dashboard()
    const person = await signedIn()
    const attacker = await signedIn({ role: 'client' })
    const both = { cookie: `${attacker.cookie}; ${person.cookie}` }
    const reversed = { cookie: `${person.cookie}; ${attacker.cookie}` }
    for (const headers of [both, reversed]) {
      const answer = await person.send('POST', '/api/turns', { body: { message: 'my secret' }, headers })
      expect(answer.status).toBe(401)
      expect(await answer.json()).toMatchObject({ error: expect.stringContaining('two sessions') })
    }
    // Signing in again ends both, so that one is left.
    person.cookie = both.cookie
    expect((await person.signIn(await code())).status).toBe(200)
    expect(await store.devices.list()).toHaveLength(1)
    expect((await attacker.send('GET', '/api/sessions')).status).toBe(401)
    const planted = { cookie: `${attacker.cookie}; ${person.cookie}` }
    expect((await person.send('GET', '/api/status', { headers: planted })).status).toBe(200)
  })

  test('cookies that another server planted do not lock a browser out: the answer deletes them and says what to do', async () => {
    const { signedIn, store } = dashboard()
    const person = await signedIn()
    const own = person.cookie
    const junk = Array.from({ length: 6 }, (_, index) => `sluice_session_42617=${`${index}`.repeat(43)}`)
    const answer = await person.send('GET', '/api/overview', { headers: { cookie: [...junk, own].join('; ') } })
    expect(answer.status).toBe(401)
    expect(await answer.json()).toMatchObject({
      code: 'unauthorized',
      cookies: 7,
      error: expect.stringContaining('sign in again if that does not help'),
    })
    // A browser sends the cookies of longer paths first. Ours has the path `/`, and stays.
    expect(answer.headers.getSetCookie()).toEqual(
      ['/api', '/api/', '/api/overview', '/api/overview/'].map(
        (path) => `sluice_session_42617=; Path=${path}; Max-Age=0; HttpOnly; SameSite=Strict`,
      ),
    )
    expect(await store.devices.list()).toHaveLength(1)
    expect((await person.send('GET', '/api/status', { headers: { cookie: own } })).status).toBe(200)
  })

  test('cookies that are not tokens are ignored, however many arrive', async () => {
    const { signedIn } = dashboard()
    const person = await signedIn()
    const junk = Array.from({ length: 50 }, (_, index) => `sluice_session_42617=junk-${index}`)
    expect((await person.send('GET', '/api/status', { headers: { cookie: [...junk, person.cookie].join('; ') } })).status).toBe(200)
  })

  test('a page of another origin cannot have cookies deleted, and no path becomes an attribute of a cookie', async () => {
    const { signedIn } = dashboard()
    const person = await signedIn()
    const cookie = [...'123456'].map((digit) => `sluice_session_42617=${digit.repeat(43)}`).join('; ')
    const foreign = await person.send('GET', '/api/overview', { headers: { cookie, 'sec-fetch-site': 'cross-site' } })
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([403, []])
    const odd = await person.send('GET', '/api/sessions/a;Domain=evil.example', { headers: { cookie } })
    expect(odd.status).toBe(401)
    expect(odd.headers.getSetCookie().join()).not.toContain('Domain')
  })

  test.each([
    ['X-Forwarded-Host', { 'x-forwarded-host': 'evil.example' }],
    ['X-Forwarded-Proto', { 'x-forwarded-proto': 'https' }],
    ['X-Forwarded-Prefix', { 'x-forwarded-prefix': '/evil' }],
    ['Forwarded', { forwarded: 'host=evil.example;proto=https' }],
    ['X-Original-URL', { 'x-original-url': '/evil' }],
  ])('%s of a peer other than a proxy changes neither the cookie nor the origin', async (_, headers) => {
    const { code, browser } = dashboard()
    const page = browser()
    const answer = await page.send('POST', '/api/dashboard/sign-in', { body: { code: await code() }, headers })
    expect(answer.status).toBe(200)
    expect(page.setCookie).toMatch(/^sluice_session_42617=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/)
    const origin = 'https://evil.example'
    expect((await page.send('POST', '/api/pairing/initiate', { headers: { ...headers, origin } })).status).toBe(403)
  })

  test.each(['localhost:42617;Domain=evil.example', 'localhost:42617 x', 'localhost:42617/evil', 'evil.example@localhost:42617'])(
    'the host %s names no cookie and begins no session',
    async (host) => {
      const { code, browser } = dashboard()
      const page = browser()
      const answer = await page.send('POST', '/api/dashboard/sign-in', { body: { code: await code() }, headers: { host } })
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(page.setCookie).toBe('')
    },
  )

  test('a bearer token wins over a cookie', async () => {
    const { signedIn, pair } = dashboard()
    const page = await signedIn({ role: 'client' })
    const { token } = await pair()
    const headers = { authorization: `Bearer ${token}` }
    expect((await page.send('GET', '/api/devices', { headers })).status).toBe(200)
    expect((await page.send('GET', '/api/devices', { headers: { authorization: 'Bearer wrong' } })).status).toBe(401)
  })

  test('no answer may be framed, sniffed or kept', async () => {
    const { signedIn } = dashboard()
    const page = await signedIn()
    for (const path of ['/api/status', '/api/dashboard/session', '/nothing']) {
      const { headers } = await page.send('GET', path)
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      })
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
  })
})

describe('behind a proxy', () => {
  test('the public address is our origin, and its path is that of the cookie', async () => {
    const { signedIn, browser } = dashboard({ config: { public_url: 'https://example.com/sluice' } })
    const page = await signedIn({ origin: 'https://example.com', host: '127.0.0.1:42617' })
    expect(page.setCookie).toContain('Path=/sluice; ')
    expect(page.setCookie).toMatch(/; Secure$/)
    expect((await page.send('POST', '/api/pairing/initiate')).status).toBe(200)
    const direct = browser()
    direct.cookie = page.cookie
    expect((await direct.send('POST', '/api/pairing/initiate', { headers: { origin: 'https://example.org' } })).status).toBe(403)
  })

  test('a trusted proxy may say that the browser uses TLS', async () => {
    const config = { trust_forwarded_headers: true }
    const secure = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.7' }
    const { browser, code } = dashboard({ config })
    const page = browser({ origin: 'https://sluice.example' })
    const body = { code: await code() }
    const answer = await page.send('POST', '/api/dashboard/sign-in', { body, headers: secure })
    expect(answer.status).toBe(200)
    expect(page.setCookie).toMatch(/^sluice_session=.*; Secure$/)
    const other = dashboard({ config })
    const spoofing = other.browser({ origin: 'https://sluice.example' })
    const spoofed = { body: { code: await other.code() }, headers: secure, peer: '203.0.113.9' }
    expect((await spoofing.send('POST', '/api/dashboard/sign-in', spoofed)).status).toBe(403)
  })
})

test('without pairing every browser on this machine is the operator, and no session begins by a cookie', async () => {
  const { browser } = dashboard({ config: { require_pairing: false } })
  const page = browser()
  expect(await (await page.send('GET', '/api/dashboard/session')).json()).toEqual({ device: null, role: 'operator' })
  expect((await page.send('POST', '/api/dashboard/session')).status).toBe(200)
  expect((await page.send('POST', '/api/pairing/initiate', { headers: { origin: 'http://localhost:3000' } })).status).toBe(403)
})

test('a passkey signs a browser in, for its role and its issuer', async () => {
  const passkeys = {
    start: async () => ({ challenge: 'c', public_key: {} }),
    finish: async () => ({ label: 'my phone', role: 'client', issuedBy: 'laptop' }) as const,
  }
  const { browser, store } = dashboard({}, { passkeys })
  const page = browser()
  expect(await (await page.send('GET', '/api/dashboard/sign-in')).json()).toEqual({ passkey: true })
  expect((await page.send('POST', '/api/dashboard/passkey/start')).status).toBe(200)
  const headers = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
  const answer = await page.send('POST', '/api/dashboard/passkey/finish', { body: {}, headers })
  expect(await answer.json()).not.toHaveProperty('token')
  expect(await store.devices.list()).toMatchObject([
    { name: 'dashboard, Firefox on Linux, passkey my phone', role: 'client', issuedBy: 'laptop' },
  ])
  const without = dashboard()
  expect((await without.browser().send('POST', '/api/dashboard/passkey/start')).status).toBe(503)
})
