import type { DeviceRecord } from '@sluice/sdk'
import { testHost, throwingHost } from '@sluice/testkit/host'
import { memorySecrets } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { webauthnSection } from './config.ts'
import feature from './index.ts'
import { createAuthenticator, FLAGS } from './testing/authenticator.ts'
import { testPasskeys } from './testing/gateway.ts'

const START = 'POST /api/webauthn/register/start'
const FINISH = 'POST /api/webauthn/register/finish'

describe('webauthn', () => {
  test('builds without I/O, and offers only the commands while disabled', () => {
    expect(feature.build(throwingHost(), v.parse(webauthnSection.schema, { enabled: true })).routes).toHaveLength(9)
    const { commands, ...rest } = feature.build(throwingHost(), v.parse(webauthnSection.schema, {}))
    expect(rest).toEqual({ disabledReason: '`enabled` is false' })
    expect(commands?.map(({ name }) => name)).toEqual(['passkeys list', 'passkeys remove'])
  })

  test('register/start returns the options in both spellings', async () => {
    const { call } = testPasskeys()
    const { status, body } = await call(START, { body: { user_id: 'alice', user_name: 'Alice' } })
    expect(status).toBe(200)
    const params = [-7, -8, -257].map((alg) => ({ type: 'public-key', alg }))
    expect(body).toEqual({
      challenge: expect.stringMatching(/^[\w-]{43}$/),
      rp: { id: 'localhost', name: 'Sluice' },
      user: { id: Buffer.from('alice').toString('base64url'), name: 'Alice', display_name: 'Alice' },
      pub_key_cred_params: params,
      timeout: 60_000,
      attestation: 'none',
      exclude_credentials: [],
      authenticator_selection: { resident_key: 'preferred', user_verification: 'required' },
      public_key: expect.objectContaining({ challenge: body.challenge, pubKeyCredParams: params, excludeCredentials: [] }),
    })
  })

  test.each(['ES256', 'EdDSA', 'RS256'] as const)('registers, lists, uses and deletes an %s passkey', async (kind) => {
    const passkeys = testPasskeys()
    const authenticator = createAuthenticator({ kind })
    const id = authenticator.id.toString('base64url')
    const registered = await passkeys.register(authenticator, { body: (body) => ({ ...body, label: 'Blue key' }) })
    expect(registered).toEqual({
      status: 200,
      body: { credential_id: id, label: 'Blue key', registered_at: new Date(passkeys.host.clock.nowMs()).toISOString() },
    })
    expect(await passkeys.signIn(authenticator)).toMatchObject({ status: 200, body: { status: 'authenticated', token: 'sluice_1' } })
    expect(await passkeys.kept()).toMatchObject([
      { credential_id: id, label: 'Blue key', sign_count: 1, registered_by: 'laptop', last_used_at: expect.any(String), disabled: false },
    ])
    const remove = (query: Record<string, string>) => passkeys.call('DELETE /api/webauthn/credentials/:id', { id, query })
    expect(await remove({ user_id: 'bob' })).toMatchObject({ status: 404 })
    expect(await remove({ user_id: 'alice' })).toEqual({ status: 200, body: { status: 'deleted' } })
    expect(await remove({ user_id: 'alice' })).toMatchObject({ status: 404 })
    expect(await passkeys.kept()).toEqual([])
  })

  test('a sign-in returns a bearer token that expires after a day', async () => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    const { body } = await passkeys.signIn(authenticator)
    const expiresAtMs = passkeys.host.clock.nowMs() + 86_400_000
    expect(body).toEqual({
      status: 'authenticated',
      token: 'sluice_1',
      expires_at: new Date(expiresAtMs).toISOString(),
      device_id: 'device-1',
      user_id: 'alice',
    })
    expect(passkeys.issued).toEqual([{ name: 'passkey Hardware Key', role: 'operator', issuedBy: 'laptop', expiresAtMs }])
  })

  test('issues tokens with the role of the passkey', async () => {
    const passkeys = testPasskeys()
    const authenticator = createAuthenticator()
    const { body } = await passkeys.call('POST /api/webauthn/register/start', {
      body: { user_id: 'bob', user_name: 'Bob', role: 'client' },
    })
    await passkeys.call('POST /api/webauthn/register/finish', { body: authenticator.register(body) })
    expect(await passkeys.kept('bob')).toMatchObject([{ role: 'client' }])
    expect(await passkeys.signIn(authenticator, { user: 'bob' })).toMatchObject({ status: 200 })
    expect(passkeys.issued).toMatchObject([{ role: 'client' }])
  })

  const idOf = ({ id }: { readonly id: Buffer }): string => id.toString('base64url')

  test('lists all passkeys and deletes one by its id alone', async () => {
    const passkeys = testPasskeys()
    const alice = idOf(await passkeys.registered('alice'))
    const bob = idOf(await passkeys.registered('bob'))
    const listed = async (query = {}) => (await passkeys.call('GET /api/webauthn/credentials', { query })).body.credentials
    expect(await listed()).toMatchObject([
      { user_id: 'alice', user_name: 'alice', registered_by: 'laptop', credential_id: alice },
      { user_id: 'bob', credential_id: bob },
    ])
    expect(await listed({ user_id: 'bob' })).toMatchObject([{ user_id: 'bob' }])
    const remove = (id: string, query = {}) => passkeys.call('DELETE /api/webauthn/credentials/:id', { id, query })
    expect(await remove(bob, { user_id: 'alice' })).toMatchObject({ status: 404 })
    expect(await remove(bob)).toMatchObject({ status: 200 })
    expect(await remove(bob)).toMatchObject({ status: 404 })
    expect(await listed()).toMatchObject([{ user_id: 'alice' }])
  })

  test('the commands list and remove passkeys', async () => {
    const audited: DeviceRecord[] = []
    const passkeys = testPasskeys({ services: { audit: async (record: DeviceRecord) => void audited.push(record) } })
    const alice = idOf(await passkeys.registered('alice'))
    expect(await passkeys.command('passkeys list')).toEqual([
      expect.stringMatching(new RegExp(`^${alice}  alice  Hardware Key  operator  registered .* by device:laptop$`)),
    ])
    expect(await passkeys.command('passkeys remove', alice)).toEqual([`removed ${alice}`])
    expect(await passkeys.command('passkeys list')).toEqual(['no passkey is registered'])
    await expect(passkeys.command('passkeys remove', alice)).rejects.toMatchObject({ code: 'not_found' })
    expect(audited).toMatchObject([
      { kind: 'passkey_registered', detail: { passkey: alice } },
      { kind: 'passkey_removed', detail: { passkey: alice } },
    ])
  })

  test('drops the passkeys that a revoked device registered', async () => {
    const revoked: string[] = []
    const pairing = {
      devices: async () => [],
      device: async () => undefined,
      revokedAmong: async (ids: readonly string[]) => ids.filter((id) => revoked.includes(id)),
      originOf: async (id: string) => id,
    }
    const passkeys = testPasskeys({}, {}, pairing)
    const authenticator = await passkeys.registered('alice')
    await passkeys.registered('bob')
    revoked.push('laptop')
    expect(await passkeys.kept('alice')).toEqual([])
    expect(await passkeys.signIn(authenticator)).toMatchObject({ status: 400 })
    expect(passkeys.issued).toEqual([])
  })

  test('assigns a passkey registered after a sign-in to the device behind it', async () => {
    const pairing = {
      devices: async () => [],
      device: async () => undefined,
      revokedAmong: async () => [],
      originOf: async (id: string) => (id === 'signed-in' ? 'laptop' : id),
    }
    const passkeys = testPasskeys({}, {}, pairing)
    const authenticator = createAuthenticator()
    await passkeys.register(authenticator, { device: 'signed-in' })
    expect(await passkeys.kept()).toMatchObject([{ registered_by: 'laptop' }])
    await passkeys.signIn(authenticator)
    expect(passkeys.issued).toMatchObject([{ issuedBy: 'laptop' }])
  })

  test('takes all sign-ins with the passkeys of a user for one person, also when no device registered them', async () => {
    const passkeys = testPasskeys()
    const authenticators = [createAuthenticator(), createAuthenticator()]
    for (const authenticator of authenticators) {
      await passkeys.register(authenticator, { device: null })
      await passkeys.signIn(authenticator)
    }
    expect(passkeys.issued.map(({ issuedBy }) => issuedBy)).toEqual(['user:alice', 'user:alice'])
  })

  test('drops the passkeys that a revoked sign-in registered, also when no device vouches for the sign-in', async () => {
    const revoked: string[] = []
    const pairing = {
      devices: async () => [],
      device: async () => undefined,
      revokedAmong: async (ids: readonly string[]) => ids.filter((id) => revoked.includes(id)),
      originOf: async (id: string) => (id === 'device-1' ? 'user:alice' : id),
    }
    const passkeys = testPasskeys({}, {}, pairing)
    const [own, foreign] = [createAuthenticator(), createAuthenticator()]
    await passkeys.register(own, { device: null })
    await passkeys.signIn(own)
    await passkeys.register(foreign, { user: 'bob', device: 'device-1' })
    expect(await passkeys.kept('bob')).toMatchObject([{ registered_by: 'device-1' }])
    await passkeys.signIn(foreign, { user: 'bob' })
    expect(passkeys.issued).toMatchObject([{ issuedBy: 'user:alice' }, { issuedBy: 'device-1' }])
    revoked.push('device-1')
    expect(await passkeys.kept('bob')).toEqual([])
    expect(await passkeys.kept('alice')).toHaveLength(1)
    expect(await passkeys.signIn(foreign, { user: 'bob' })).toMatchObject({ status: 400 })
  })

  test('the command names the device that registered a passkey', async () => {
    const device = { id: 'laptop', name: "Ada's laptop", role: 'operator', origin: 'laptop' } as const
    const pairing = {
      devices: async () => [device],
      device: async (id: string) => (id === 'laptop' ? device : undefined),
      revokedAmong: async () => [],
      originOf: async (id: string) => id,
    }
    const passkeys = testPasskeys({}, {}, pairing)
    await passkeys.registered()
    expect(await passkeys.command('passkeys list')).toEqual([expect.stringContaining('by device "Ada\'s laptop"')])
  })

  test('accepts the JSON that browsers make of a credential', async () => {
    const passkeys = testPasskeys()
    const authenticator = createAuthenticator()
    const asJson = (body: Record<string, unknown>) => ({
      id: body.id,
      rawId: body.id,
      type: 'public-key',
      authenticatorAttachment: 'platform',
      clientExtensionResults: {},
      response: {
        clientDataJSON: body.client_data_json,
        attestationObject: body.attestation_object,
        authenticatorData: body.authenticator_data,
        signature: body.signature,
        transports: ['internal', 'smart-card'],
        userHandle: body.signature ? Buffer.from('alice').toString('base64url') : undefined,
      },
    })
    expect(await passkeys.register(authenticator, { body: asJson })).toMatchObject({ status: 200 })
    expect(await passkeys.signIn(authenticator, { body: asJson })).toMatchObject({ status: 200 })
  })

  test('signs in a caller without a token by the user handle alone', async () => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered('ålice')
    const start = await passkeys.call('POST /passkey/start')
    expect(start.body).toMatchObject({ allow_credentials: [], public_key: { allowCredentials: [], userVerification: 'required' } })
    const handle = Buffer.from('ålice').toString('base64url')
    const finish = async (change: object) => {
      const { body } = await passkeys.call('POST /passkey/start')
      const made = authenticator.signIn(body) as object
      return passkeys.call('POST /passkey/finish', { body: { ...made, ...change } })
    }
    expect(await finish({ user_handle: handle })).toMatchObject({ status: 200, body: { user_id: 'ålice', token: 'sluice_1' } })
    const refused = { status: 401, body: { error: 'The passkey was not accepted', code: 'unauthorized' } }
    for (const change of [
      {},
      { user_handle: null },
      { user_handle: Buffer.from('nobody').toString('base64url') },
      { user_handle: '_w' },
      { user_handle: handle, id: 'A'.repeat(43) },
      { user_handle: handle, signature: 'AAAA' },
    ]) {
      expect(await finish(change)).toEqual(refused)
    }
    expect(passkeys.issued).toHaveLength(1)
  })

  test('binds a challenge to its device, purpose, time and first use', async () => {
    const passkeys = testPasskeys()
    const { call, host } = passkeys
    const user = { user_id: 'alice', user_name: 'Alice' }
    const pending = { status: 400, body: { error: 'No pending registration for this challenge' } }
    const options = async () => (await call(START, { body: user })).body

    const used = createAuthenticator().register(await options())
    expect(await call(FINISH, { body: used })).toMatchObject({ status: 200 })
    expect(await call(FINISH, { body: used })).toMatchObject(pending)

    const failed = await options()
    expect(await call(FINISH, { body: createAuthenticator().register(failed, { flags: 0x41 }) })).toMatchObject({ status: 400 })
    expect(await call(FINISH, { body: createAuthenticator().register(failed) })).toMatchObject(pending)

    const others = createAuthenticator().register(await options())
    expect(await call(FINISH, { body: others, device: 'phone' })).toMatchObject(pending)
    expect(await call(FINISH, { body: others, device: null })).toMatchObject(pending)
    expect(await call(FINISH, { body: others })).toMatchObject({ status: 200 })

    const late = createAuthenticator().register(await options())
    await host.advance(300_000)
    expect(await call(FINISH, { body: late })).toMatchObject(pending)

    const authenticator = await passkeys.registered('bob')
    const signIn = await call('POST /api/webauthn/auth/start', { body: { user_id: 'bob' } })
    expect(await call(FINISH, { body: createAuthenticator().register(signIn.body) })).toMatchObject(pending)
    const noSignIn = { status: 400, body: { error: 'No pending authentication for this challenge' } }
    const finishAuth = async (name: string, device = 'laptop') => {
      const { body } = await call('POST /api/webauthn/auth/start', { body: { user_id: 'bob' } })
      return call(name, { body: authenticator.signIn(body), device })
    }
    expect(await finishAuth('POST /api/webauthn/auth/finish', 'phone')).toMatchObject(noSignIn)
    expect(await finishAuth('POST /passkey/finish')).toMatchObject(noSignIn)
    const body = authenticator.signIn((await call('POST /api/webauthn/auth/start', { body: { user_id: 'bob' } })).body)
    expect(await call('POST /api/webauthn/auth/finish', { body })).toMatchObject({ status: 200 })
    expect(await call('POST /api/webauthn/auth/finish', { body })).toMatchObject(noSignIn)
  })

  test.each([
    ['the same', 5],
    ['a smaller', 4],
    ['no', 0],
  ])('disables a passkey that signs %s counter', async (_what, counter) => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    expect(await passkeys.signIn(authenticator, { counter: 5 })).toMatchObject({ status: 200 })
    expect(await passkeys.signIn(authenticator, { counter })).toMatchObject({ status: 401 })
    expect(await passkeys.kept()).toMatchObject([{ disabled: true, sign_count: 5 }])
    expect(passkeys.host.logs).toContainEqual(expect.objectContaining({ level: 'warn', message: 'passkey refused' }))
    expect(await passkeys.call('POST /api/webauthn/auth/start', { body: { user_id: 'alice' } })).toMatchObject({ status: 400 })
    const { body } = await passkeys.call('POST /passkey/start')
    const made = { ...(authenticator.signIn(body, { counter: 6 }) as object), user_handle: Buffer.from('alice').toString('base64url') }
    expect(await passkeys.call('POST /passkey/finish', { body: made })).toMatchObject({ status: 401 })
    expect(passkeys.issued).toHaveLength(1)
  })

  test('ignores a counter whose signature is invalid', async () => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    await passkeys.signIn(authenticator, { counter: 5 })
    expect(await passkeys.signIn(authenticator, { counter: 4, signature: () => Buffer.from('3006020101020101', 'hex') })).toMatchObject({
      status: 401,
    })
    expect(await passkeys.signIn(authenticator, { counter: 6 })).toMatchObject({ status: 200 })
  })

  test('accepts authenticators that do not count', async () => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    for (let time = 0; time < 3; time++) expect(await passkeys.signIn(authenticator, { counter: 0 })).toMatchObject({ status: 200 })
  })

  test('updates the backup state on a sign-in', async () => {
    const passkeys = testPasskeys()
    const flags = FLAGS.present | FLAGS.verified | FLAGS.mayBeBackedUp
    const authenticator = createAuthenticator({ flags })
    await passkeys.register(authenticator)
    expect(await passkeys.kept()).toMatchObject([{ backed_up: false }])
    expect(await passkeys.signIn(authenticator, { flags: flags | FLAGS.isBackedUp })).toMatchObject({ status: 200 })
    expect(await passkeys.kept()).toMatchObject([{ backed_up: true }])
  })

  test('refuses a passkey that any user has registered already', async () => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    expect(await passkeys.register(authenticator)).toMatchObject({ status: 409 })
    expect(await passkeys.register(authenticator, { user: 'bob' })).toMatchObject({ status: 409 })
    expect(await passkeys.kept('bob')).toEqual([])
    const { body } = await passkeys.call(START, { body: { user_id: 'alice', user_name: 'Alice' } })
    expect(body.exclude_credentials).toEqual([{ type: 'public-key', id: authenticator.id.toString('base64url') }])
  })

  test('ignores the attestation statement', async () => {
    const passkeys = testPasskeys()
    const attested = await passkeys.register(createAuthenticator(), {
      attestation: (members) =>
        new Map(members).set('fmt', 'packed').set(
          'attStmt',
          new Map<string, string | Uint8Array | string[]>([
            ['alg', 'odd'],
            ['sig', Buffer.alloc(70)],
            ['x5c', ['http://evil.test/crl']],
          ]),
        ),
    })
    expect(attested).toMatchObject({ status: 200 })
  })

  test('answers 503 to a sign-in if the host issues no tokens', async () => {
    const passkeys = testPasskeys({ services: {} })
    const authenticator = await passkeys.registered()
    expect(await passkeys.signIn(authenticator)).toMatchObject({ status: 503 })
  })

  test('keeps passkeys across a restart, but not challenges', async () => {
    const before = testPasskeys()
    const authenticator = await before.registered()
    const { body } = await before.call('POST /api/webauthn/auth/start', { body: { user_id: 'alice' } })
    const after = before.restarted()
    expect(await after.call('POST /api/webauthn/auth/finish', { body: authenticator.signIn(body) })).toMatchObject({ status: 400 })
    expect(await after.signIn(authenticator)).toMatchObject({ status: 200 })
  })

  test.each([
    [{}],
    [{ user_id: 'alice' }],
    [{ user_id: '', user_name: 'Alice' }],
    [{ user_id: 'x'.repeat(65), user_name: 'Alice' }],
    [{ user_id: 'é'.repeat(33), user_name: 'Alice' }],
    [{ user_id: 'a\nb', user_name: 'Alice' }],
    [{ user_id: 1, user_name: 'Alice' }],
    [{ user_id: 'alice', user_name: '' }],
    [{ user_id: 'alice', user_name: 'x'.repeat(65) }],
    [{ user_id: 'alice', user_name: ['Alice'] }],
    [[]],
  ])('register/start refuses %j', async (body) => {
    expect(await testPasskeys().call(START, { body })).toMatchObject({ status: 400 })
  })

  test('an unknown user has no passkeys and cannot sign in', async () => {
    const { call, kept } = testPasskeys()
    expect(await kept('nobody')).toEqual([])
    expect(await call('GET /api/webauthn/credentials')).toMatchObject({ status: 200, body: { credentials: [] } })
    expect(await call('POST /api/webauthn/auth/start', { body: { user_id: 'nobody' } })).toEqual({
      status: 400,
      body: { error: "No registered credentials for user 'nobody'", code: 'invalid_request' },
    })
  })

  test('writes no token to logs, events or lists', async () => {
    const passkeys = testPasskeys()
    await passkeys.signIn(await passkeys.registered())
    expect(JSON.stringify([passkeys.host.logs, passkeys.host.emitted, await passkeys.kept()])).not.toContain('sluice_')
  })

  test('the page loads nothing and runs only its own script', async () => {
    const { call } = testPasskeys({}, { rp_name: '<b>"&' })
    const page = (await call('GET /passkey')).body as unknown as Response
    const html = await page.text()
    expect(html).toContain('Sign in to &lt;b&gt;&quot;&amp;')
    expect(html).not.toMatch(/ (?:src|href|on\w+|style)=/)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-[\w+/=]{44}'; connect-src 'self'; /)
    expect(policy).toContain("frame-ancestors 'none'")
  })

  test('doctor checks library and secret store and warns of disabled passkeys', async () => {
    const findings = async (host = testHost()) =>
      feature.build(host, v.parse(webauthnSection.schema, { enabled: true })).check?.(new AbortController().signal)
    expect(await findings()).toEqual([
      { status: 'ok', detail: 'passkeys belong to localhost and are used at http://localhost:42617' },
      { status: 'ok', detail: 'loading the passkey library works' },
      { status: 'ok', detail: 'writing and reading the secret store works' },
      { status: 'ok', detail: '0 passkeys of 0 users' },
    ])
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    await passkeys.signIn(authenticator, { counter: 5 })
    await passkeys.signIn(authenticator, { counter: 5 })
    expect((await findings(passkeys.host))?.at(-1)).toMatchObject({ status: 'warn', detail: expect.stringContaining('1 of them disabled') })
    const broken = { ...memorySecrets({ passkeys: 'nonsense' }), set: () => Promise.reject(new Error('the disk is full')) }
    expect((await findings(testHost({ secrets: broken })))?.slice(2)).toMatchObject([
      { status: 'fail', detail: 'writing and reading the secret store failed: the disk is full', fix: expect.any(String) },
      { status: 'fail', fix: expect.any(String) },
    ])
  })
})
