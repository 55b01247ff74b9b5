import { createHash, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createAuthenticator, type Edit, FLAGS } from './testing/authenticator.ts'
import type { Cbor } from './testing/cbor.ts'
import { testPasskeys } from './testing/gateway.ts'

const attested = FLAGS.present | FLAGS.verified | FLAGS.attested
const set = (members: Map<Cbor, Cbor>, key: Cbor, value: Cbor) => new Map(members).set(key, value)
const without = (members: Map<Cbor, Cbor>, key: Cbor) => new Map([...members].filter(([name]) => name !== key))
const text = (body: Record<string, unknown>, key: string) => body[key] as string
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
/** The offset of the credential id's length in authenticator data. */
const ID_LENGTH_AT = 53

const WRONG: readonly (readonly [what: string, edit: Edit])[] = [
  ['another challenge in the body', { body: (body) => ({ ...body, challenge: 'A'.repeat(43) }) }],
  ['another challenge in the client data', { clientData: (data) => ({ ...data, challenge: 'A'.repeat(43) }) }],
  ['no challenge in the client data', { clientData: ({ challenge: _, ...data }) => data }],
  ['no challenge anywhere', { clientData: ({ challenge: _, ...data }) => data, body: ({ challenge: _, ...body }) => body }],
  ['a challenge that is a number', { clientData: (data) => ({ ...data, challenge: 1 }) }],
  ['the type of a sign-in', { clientData: (data) => ({ ...data, type: 'webauthn.get' }) }],
  ['no type', { clientData: ({ type: _, ...data }) => data }],
  ['another host', { clientData: (data) => ({ ...data, origin: 'http://evil.test:42617' }) }],
  ['another port', { clientData: (data) => ({ ...data, origin: 'http://localhost:42618' }) }],
  ['another scheme', { clientData: (data) => ({ ...data, origin: 'https://localhost:42617' }) }],
  ['a slash after the origin', { clientData: (data) => ({ ...data, origin: 'http://localhost:42617/' }) }],
  ['an origin in capitals', { clientData: (data) => ({ ...data, origin: 'http://LOCALHOST:42617' }) }],
  ['a list of origins', { clientData: (data) => ({ ...data, origin: [data.origin] }) }],
  ['no origin', { clientData: ({ origin: _, ...data }) => data }],
  ['a frame of another origin', { clientData: (data) => ({ ...data, crossOrigin: true }) }],
  ['a crossOrigin that is not a boolean', { clientData: (data) => ({ ...data, crossOrigin: 'false' }) }],
  ['a top origin', { clientData: (data) => ({ ...data, topOrigin: 'http://localhost:42617' }) }],
  ['client data that is a list', { clientData: (data) => [data] }],
  ['client data that is null', { clientData: () => null }],
  ['truncated client data', { clientDataBytes: (bytes) => bytes.subarray(0, -1) }],
  [
    'client data that is not UTF-8',
    { clientDataBytes: (bytes) => Buffer.concat([bytes.subarray(0, -2), Buffer.from([0xff, 0x22, 0x7d])]) },
  ],

  ['another rp id', { rpId: 'evil.test' }],
  ['an rp id in capitals', { rpId: 'LOCALHOST' }],
  ['no user present', { flags: attested & ~FLAGS.present }],
  ['no user verified', { flags: attested & ~FLAGS.verified }],
  ['no credential', { flags: attested & ~FLAGS.attested }],
  ['a backup of a passkey that is not eligible', { flags: attested | FLAGS.isBackedUp }],
  ['the extension flag without extensions', { flags: attested | FLAGS.extended }],
  ['an id that differs from the credential id', { body: (body) => ({ ...body, id: 'A'.repeat(43) }) }],
  ['an empty credential id', { credentialId: Buffer.alloc(0), body: (body) => ({ ...body, id: 'A'.repeat(43) }) }],
  ['authenticator data that is empty', { authData: () => Buffer.alloc(0) }],
  ['authenticator data of 36 bytes', { authData: (data) => data.subarray(0, 36) }],
  ['authenticator data that ends after the counter', { authData: (data) => data.subarray(0, 37) }],
  ['authenticator data that ends in the id', { authData: (data) => data.subarray(0, ID_LENGTH_AT + 10) }],
  ['authenticator data that ends in the key', { authData: (data) => data.subarray(0, -1) }],
  ['a byte after the key', { authData: (data) => Buffer.concat([data, Buffer.from([0])]) }],
  [
    'a credential id longer than the data',
    { authData: (data) => Buffer.concat([data.subarray(0, ID_LENGTH_AT), Buffer.from([255, 255]), data.subarray(ID_LENGTH_AT + 2)]) },
  ],
  [
    'a shorter hash of the rp id',
    { authData: (data) => Buffer.concat([createHash('sha1').update('localhost').digest(), data.subarray(32)]) },
  ],

  ['a truncated attestation object', { attestationBytes: (bytes) => bytes.subarray(0, -1) }],
  ['a byte after the attestation object', { attestationBytes: (bytes) => Buffer.concat([bytes, Buffer.from([0])]) }],
  ['a second attestation object', { attestationBytes: (bytes) => Buffer.concat([bytes, bytes]) }],
  ['an attestation object that is JSON', { attestationBytes: () => Buffer.from('{"public_key":"AAAA"}') }],
  ['authenticator data without an attestation object', { attestation: (members) => members.get('authData') ?? '' }],
  ['an attestation object that is a list', { attestation: (members) => [...members.values()] }],
  ['an attestation object without members', { attestation: () => new Map() }],
  ['no format', { attestation: (members) => without(members, 'fmt') }],
  ['no statement', { attestation: (members) => without(members, 'attStmt') }],
  ['no authenticator data', { attestation: (members) => without(members, 'authData') }],
  ['a fourth member', { attestation: (members) => set(members, 'more', 1) }],
  [
    'one member twice',
    { attestationBytes: (bytes) => Buffer.from(bytes.toString('latin1').replace('attStmt\xa0', 'authData\x41a'), 'latin1') },
  ],
  ['members with numbers as names', { attestation: (members) => new Map([...members.values()].map((value, name) => [name, value])) }],
  ['authenticator data that is text', { attestation: (members) => set(members, 'authData', 'a'.repeat(200)) }],
  ['a format that is not text', { attestation: (members) => set(members, 'fmt', 1) }],
  ['a statement that is a list', { attestation: (members) => set(members, 'attStmt', []) }],
  [
    'a map of indefinite length',
    { attestationBytes: (bytes) => Buffer.concat([Buffer.from([0xbf]), bytes.subarray(1), Buffer.from([0xff])]) },
  ],
  ['a map of 2^32 pairs', { attestationBytes: (bytes) => Buffer.concat([Buffer.from([0xba, 255, 255, 255, 255]), bytes.subarray(1)]) }],
  ['a text of 2^64 bytes', { attestationBytes: () => Buffer.from([0xa3, 0x7b, 255, 255, 255, 255, 255, 255, 255, 255]) }],
  ['a statement nested a thousand deep', { attestation: (members) => set(members, 'attStmt', nested(1000)) }],
  ['random bytes', { attestationBytes: (bytes) => createHash('sha512').update(bytes).digest() }],

  ['an algorithm outside of the options', { key: (key) => set(key, 3, -35) }],
  ['the algorithm of another key type', { key: (key) => set(key, 3, -257) }],
  ['an algorithm that is text', { key: (key) => set(key, 3, 'ES256') }],
  ['no algorithm', { key: (key) => without(key, 3) }],
  ['another key type', { key: (key) => set(key, 1, 3) }],
  [
    'another curve',
    { key: (key) => set(set(set(key, -1, 2), -2, Buffer.from(p384.x ?? '', 'base64url')), -3, Buffer.from(p384.y ?? '', 'base64url')) },
  ],
  ['a key without x', { key: (key) => without(key, -2) }],
  ['a point that is not on the curve', { key: (key) => set(key, -2, Buffer.alloc(32, 1)) }],
  ['an x coordinate that is too short', { key: (key) => set(key, -2, Buffer.alloc(31, 1)) }],
  ['a key that is not a map', { key: () => 'key' }],
  ['a key nested a thousand deep', { key: () => nested(1000) }],

  ['no id', { body: ({ id: _, ...body }) => body }],
  ['an id that is a number', { body: (body) => ({ ...body, id: 1 }) }],
  ['an id that is empty', { body: (body) => ({ ...body, id: '' }) }],
  ['an id that is too long', { body: (body) => ({ ...body, id: 'A'.repeat(1368) }) }],
  ['an id with padding', { body: (body) => ({ ...body, id: `${text(body, 'id')}=` }) }],
  ['a raw id that differs from the id', { body: (body) => ({ ...body, raw_id: 'A'.repeat(43) }) }],
  ['another type of credential', { body: (body) => ({ ...body, type: 'password' }) }],
  ['no attestation object', { body: ({ attestation_object: _, ...body }) => body }],
  ['an attestation object that is null', { body: (body) => ({ ...body, attestation_object: null }) }],
  ['an attestation object in base64', { body: (body) => ({ ...body, attestation_object: '++//' }) }],
  ['an attestation object of an impossible length', { body: (body) => ({ ...body, attestation_object: 'AAAAA' }) }],
  ['an attestation object that is too long', { body: (body) => ({ ...body, attestation_object: 'A'.repeat(16_388) }) }],
  ['no client data', { body: ({ client_data_json: _, ...body }) => body }],
  ['client data that is an object', { body: (body) => ({ ...body, client_data_json: {} }) }],
  ['client data that is too long', { body: (body) => ({ ...body, client_data_json: 'A'.repeat(8196) }) }],
  ['a challenge that is a list', { body: (body) => ({ ...body, challenge: [body.challenge] }) }],
  ['a label that is a number', { body: (body) => ({ ...body, label: 7 }) }],
  ['a label that is too long', { body: (body) => ({ ...body, label: 'x'.repeat(65) }) }],
  ['a label with an invisible character', { body: (body) => ({ ...body, label: 'a\u202eb' }) }],
  ['transports that are a string', { body: (body) => ({ ...body, transports: 'usb' }) }],
  ['an invalid transport', { body: (body) => ({ ...body, transports: ['<script>'] }) }],
  ['too many transports', { body: (body) => ({ ...body, transports: Array(9).fill('usb') }) }],
  ['a body that is a list', { body: (body) => [body] }],
  ['a body that is a text', { body: () => 'body' }],
  ['a body that is null', { body: () => null }],
  ['a response that is a text', { body: ({ attestation_object: _, ...body }) => ({ ...body, response: 'response' }) }],
]

describe('passkey registration', () => {
  test.each(WRONG)('refuses %s with 400 and stores nothing', async (_what, edit) => {
    const passkeys = testPasskeys()
    const { status, body } = await passkeys.register(createAuthenticator(), edit)
    expect({ status, ...body }).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(await passkeys.kept()).toEqual([])
    expect(await passkeys.host.secrets.get('passkeys')).toBeUndefined()
  })
})

function nested(depth: number): Cbor {
  let value: Cbor = new Map()
  for (let level = 0; level < depth; level++) value = new Map([['a', value]])
  return value
}
