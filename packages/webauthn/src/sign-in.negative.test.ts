import { describe, expect, test } from 'vitest'
import { createAuthenticator, type Edit, FLAGS } from './testing/authenticator.ts'
import { testPasskeys } from './testing/gateway.ts'

const checked = FLAGS.present | FLAGS.verified
const flip = (at: number) => (bytes: Buffer) => {
  const changed = Buffer.from(bytes)
  changed[at < 0 ? bytes.length + at : at] = (bytes.at(at) ?? 0) ^ 1
  return changed
}
const base64url = (value: string) => Buffer.from(value).toString('base64url')

const WRONG: readonly (readonly [what: string, status: 400 | 401, edit: Edit])[] = [
  ['another challenge in the body', 400, { body: (body) => ({ ...body, challenge: 'A'.repeat(43) }) }],
  ['another challenge in the client data', 401, { clientData: (data) => ({ ...data, challenge: 'A'.repeat(43) }) }],
  ['no challenge anywhere', 400, { clientData: ({ challenge: _, ...data }) => data, body: ({ challenge: _, ...body }) => body }],
  ['the type of a registration', 401, { clientData: (data) => ({ ...data, type: 'webauthn.create' }) }],
  ['no type', 401, { clientData: ({ type: _, ...data }) => data }],
  ['another host', 401, { clientData: (data) => ({ ...data, origin: 'http://evil.test:42617' }) }],
  ['another port', 401, { clientData: (data) => ({ ...data, origin: 'http://localhost:1' }) }],
  ['no origin', 401, { clientData: ({ origin: _, ...data }) => data }],
  ['a frame of another origin', 401, { clientData: (data) => ({ ...data, crossOrigin: true }) }],
  ['a top origin', 401, { clientData: (data) => ({ ...data, topOrigin: 'http://evil.test' }) }],
  ['token binding of an unknown kind', 401, { clientData: (data) => ({ ...data, tokenBinding: { status: 'odd' } }) }],
  ['client data that is a number', 401, { clientData: () => 1 }],
  ['client data that is not JSON', 401, { clientDataBytes: (bytes) => bytes.subarray(1) }],

  ['another rp id', 401, { rpId: 'evil.test' }],
  ['no user present', 401, { flags: checked & ~FLAGS.present }],
  ['no user verified', 401, { flags: checked & ~FLAGS.verified }],
  ['no flags', 401, { flags: 0 }],
  ['a changed backup eligibility', 401, { flags: checked | FLAGS.mayBeBackedUp }],
  ['a backup of a passkey that is not eligible', 401, { flags: checked | FLAGS.isBackedUp }],
  ['the extension flag without extensions', 401, { flags: checked | FLAGS.extended }],
  ['the credential flag without a credential', 401, { flags: checked | FLAGS.attested }],
  ['authenticator data of 36 bytes', 401, { authData: (data) => data.subarray(0, 36) }],
  ['a byte after the authenticator data', 401, { authData: (data) => Buffer.concat([data, Buffer.from([0])]) }],

  ['a signature over other authenticator data', 401, { signed: flip(33) }],
  ['a signature over other client data', 401, { signed: flip(-1) }],
  ['a signature over nothing', 401, { signed: () => Buffer.alloc(0) }],
  ['a signature with another last byte', 401, { signature: flip(-1) }],
  ['a signature with another r', 401, { signature: flip(10) }],
  ['a signature with another tag', 401, { signature: flip(0) }],
  ['a signature with another length', 401, { signature: flip(1) }],
  ['a truncated signature', 401, { signature: (bytes) => bytes.subarray(0, -1) }],
  ['a byte after the signature', 401, { signature: (bytes) => Buffer.concat([bytes, Buffer.from([0])]) }],
  ['a signature that is not DER', 401, { signature: () => Buffer.alloc(64, 7) }],
  ['a signature of zeros', 401, { signature: () => Buffer.from([0x30, 6, 2, 1, 0, 2, 1, 0]) }],
  ['a signature of one byte', 401, { signature: () => Buffer.from([0x30]) }],

  ['an unknown id', 401, { body: (body) => ({ ...body, id: 'A'.repeat(43) }) }],
  ['the user handle of another user', 401, { body: (body) => ({ ...body, user_handle: base64url('bob') }) }],
  ['a user handle that is not UTF-8', 401, { body: (body) => ({ ...body, user_handle: '_-8' }) }],
  ['a user handle that is too long', 400, { body: (body) => ({ ...body, user_handle: 'A'.repeat(90) }) }],
  ['a raw id that differs from the id', 400, { body: (body) => ({ ...body, raw_id: 'A'.repeat(43) }) }],
  ['another type of credential', 400, { body: (body) => ({ ...body, type: 'password' }) }],
  ['no id', 400, { body: ({ id: _, ...body }) => body }],
  ['an id that is null', 400, { body: (body) => ({ ...body, id: null }) }],
  ['an id that is too long', 400, { body: (body) => ({ ...body, id: 'A'.repeat(1368) }) }],
  ['no authenticator data', 400, { body: ({ authenticator_data: _, ...body }) => body }],
  ['authenticator data that is an object', 400, { body: (body) => ({ ...body, authenticator_data: {} }) }],
  ['authenticator data that is too long', 400, { body: (body) => ({ ...body, authenticator_data: 'A'.repeat(4100) }) }],
  ['no client data', 400, { body: ({ client_data_json: _, ...body }) => body }],
  ['client data in base64', 400, { body: (body) => ({ ...body, client_data_json: '++//' }) }],
  ['no signature', 400, { body: ({ signature: _, ...body }) => body }],
  ['an empty signature', 400, { body: (body) => ({ ...body, signature: '' }) }],
  ['a signature that is too long', 400, { body: (body) => ({ ...body, signature: 'A'.repeat(2052) }) }],
  ['a signature of an impossible length', 400, { body: (body) => ({ ...body, signature: 'AAAAA' }) }],
  ['a body that is a list', 400, { body: (body) => [body] }],
  ['a body that is null', 400, { body: () => null }],
]

describe('passkey sign-in', () => {
  test.each(WRONG)('refuses %s with %i, issues no token and changes nothing', async (_what, expected, edit) => {
    const passkeys = testPasskeys()
    const authenticator = await passkeys.registered()
    const before = await passkeys.host.secrets.get('passkeys')
    const { status, body } = await passkeys.signIn(authenticator, edit)
    expect(status, String(body.error)).toBe(expected)
    if (expected === 401) expect(body.error).toBe('The passkey was not accepted')
    expect(passkeys.issued).toEqual([])
    expect(await passkeys.host.secrets.get('passkeys')).toBe(before)
  })

  test('refuses a passkey of another user than the requested one', async () => {
    const passkeys = testPasskeys()
    const [alice, bob] = [await passkeys.registered('alice'), await passkeys.registered('bob')]
    expect(await passkeys.signIn(bob, { user: 'alice' })).toMatchObject({ status: 401 })
    expect(await passkeys.signIn(alice, { user: 'bob' })).toMatchObject({ status: 401 })
    const asBob = Object.assign(createAuthenticator(), { id: bob.id })
    expect(await passkeys.signIn(asBob, { user: 'bob' })).toMatchObject({ status: 401 })
    expect(passkeys.issued).toEqual([])
  })
})
