import { expect, test } from 'vitest'
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
  ['client data that is no JSON', 401, { clientDataBytes: (bytes) => bytes.subarray(1) }],

  ['another rp id', 401, { rpId: 'evil.test' }],
  ['nobody present', 401, { flags: checked & ~FLAGS.present }],
  ['nobody verified', 401, { flags: checked & ~FLAGS.verified }],
  ['no flags', 401, { flags: 0 }],
  ['a passkey that may now be backed up', 401, { flags: checked | FLAGS.mayBeBackedUp }],
  ['a backup of what has none', 401, { flags: checked | FLAGS.isBackedUp }],
  ['extensions that are not there', 401, { flags: checked | FLAGS.extended }],
  ['a credential that is not there', 401, { flags: checked | FLAGS.attested }],
  ['authenticator data of 36 bytes', 401, { authData: (data) => data.subarray(0, 36) }],
  ['a byte after the authenticator data', 401, { authData: (data) => Buffer.concat([data, Buffer.from([0])]) }],

  ['a signature over other authenticator data', 401, { signed: flip(33) }],
  ['a signature over other client data', 401, { signed: flip(-1) }],
  ['a signature over nothing', 401, { signed: () => Buffer.alloc(0) }],
  ['a signature with another last byte', 401, { signature: flip(-1) }],
  ['a signature with another r', 401, { signature: flip(10) }],
  ['a signature with another tag', 401, { signature: flip(0) }],
  ['a signature with another length', 401, { signature: flip(1) }],
  ['a signature cut short', 401, { signature: (bytes) => bytes.subarray(0, -1) }],
  ['a byte after the signature', 401, { signature: (bytes) => Buffer.concat([bytes, Buffer.from([0])]) }],
  ['a signature that is not DER', 401, { signature: () => Buffer.alloc(64, 7) }],
  ['a signature of zeros', 401, { signature: () => Buffer.from([0x30, 6, 2, 1, 0, 2, 1, 0]) }],
  ['a signature of one byte', 401, { signature: () => Buffer.from([0x30]) }],

  ['an id nobody has', 401, { body: (body) => ({ ...body, id: 'A'.repeat(43) }) }],
  ['the user handle of somebody else', 401, { body: (body) => ({ ...body, user_handle: base64url('bob') }) }],
  ['a user handle that is no text', 401, { body: (body) => ({ ...body, user_handle: '_-8' }) }],
  ['a user handle that is too long', 400, { body: (body) => ({ ...body, user_handle: 'A'.repeat(90) }) }],
  ['a raw id that is another', 400, { body: (body) => ({ ...body, raw_id: 'A'.repeat(43) }) }],
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

test.each(WRONG)('§5 rule 7: a sign-in with %s is %i; no token is issued, and nothing changes', async (_what, expected, edit) => {
  const passkeys = testPasskeys()
  const authenticator = await passkeys.registered()
  const before = await passkeys.host.secrets.get('passkeys')
  const { status, body } = await passkeys.signIn(authenticator, edit)
  expect(status, String(body.error)).toBe(expected)
  if (expected === 401) expect(body.error).toBe('The passkey was not accepted')
  expect(passkeys.issued).toEqual([])
  expect(await passkeys.host.secrets.get('passkeys')).toBe(before)
})

test('§5 rule 7: a passkey of one user signs in nobody else, whoever was asked for', async () => {
  const passkeys = testPasskeys()
  const [alice, bob] = [await passkeys.registered('alice'), await passkeys.registered('bob')]
  expect(await passkeys.signIn(bob, { user: 'alice' })).toMatchObject({ status: 401 })
  expect(await passkeys.signIn(alice, { user: 'bob' })).toMatchObject({ status: 401 })
  const asBob = Object.assign(createAuthenticator(), { id: bob.id })
  expect(await passkeys.signIn(asBob, { user: 'bob' })).toMatchObject({ status: 401 })
  expect(passkeys.issued).toEqual([])
})
