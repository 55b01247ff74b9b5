/** A software authenticator with its browser. A test can change every value that they produce. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { type Cbor, cbor } from './cbor.ts'

export const ORIGIN = 'http://localhost:42617'
export const FLAGS = { present: 0x01, verified: 0x04, mayBeBackedUp: 0x08, isBackedUp: 0x10, attested: 0x40, extended: 0x80 } as const

type Kind = 'ES256' | 'EdDSA' | 'RS256'
type Json = Record<string, unknown>
type EditBytes = (bytes: Buffer) => Uint8Array

/** Replaces parts of a valid registration or sign-in. */
export interface Edit {
  readonly clientData?: (data: Json) => unknown
  readonly clientDataBytes?: EditBytes
  readonly rpId?: string
  readonly flags?: number
  readonly counter?: number
  readonly credentialId?: Buffer
  readonly key?: (key: Map<Cbor, Cbor>) => Cbor
  readonly authData?: EditBytes
  readonly attestation?: (members: Map<Cbor, Cbor>) => Cbor
  readonly attestationBytes?: EditBytes
  readonly signed?: EditBytes
  readonly signature?: EditBytes
  readonly body?: (body: Json) => unknown
}

export interface Authenticator {
  readonly id: Buffer
  counter: number
  /** Returns the body of register/finish for the options of register/start. */
  register(options: Json, edit?: Edit): unknown
  /** Returns the body of auth/finish for the options of auth/start. */
  signIn(options: Json, edit?: Edit): unknown
}

const same: EditBytes = (bytes) => bytes
const sha256 = (bytes: Uint8Array | string): Buffer => createHash('sha256').update(bytes).digest()
const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255])

export function createAuthenticator({ kind = 'ES256' as Kind, flags = FLAGS.present | FLAGS.verified } = {}): Authenticator {
  const { publicKey, privateKey } = keyPair(kind)
  const own = { id: randomBytes(32), counter: 0 }
  const clientDataOf = (type: string, { challenge }: Json, { clientData = (data) => data, clientDataBytes = same }: Edit): Buffer =>
    Buffer.from(clientDataBytes(Buffer.from(JSON.stringify(clientData({ type, challenge, origin: ORIGIN, crossOrigin: false })))))
  const dataOf = (more: number, edit: Edit): Buffer => {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(edit.counter ?? own.counter)
    return Buffer.concat([sha256(edit.rpId ?? 'localhost'), Buffer.from([edit.flags ?? flags | more]), counter])
  }
  const finished = (body: Json, { body: change = (given) => given }: Edit): unknown =>
    change(
      Object.fromEntries(Object.entries(body).map(([key, value]) => [key, Buffer.isBuffer(value) ? value.toString('base64url') : value])),
    )

  return Object.assign(own, {
    register(options: Json, edit: Edit = {}) {
      const { authData = same, attestation = (members) => members, attestationBytes = same, key = (cose) => cose } = edit
      const id = edit.credentialId ?? own.id
      const attested = [Buffer.alloc(16), u16(id.length), id, cbor(key(coseOf(kind, publicKey)))]
      const data = authData(Buffer.concat([dataOf(FLAGS.attested, edit), ...attested]))
      const members = new Map<Cbor, Cbor>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', data],
      ])
      return finished(
        {
          challenge: options.challenge,
          id,
          attestation_object: Buffer.from(attestationBytes(cbor(attestation(members)))),
          client_data_json: clientDataOf('webauthn.create', options, edit),
        },
        edit,
      )
    },
    signIn(options: Json, edit: Edit = {}) {
      own.counter += 1
      const { authData = same, signed = same, signature = same } = edit
      const client = clientDataOf('webauthn.get', options, edit)
      const data = Buffer.from(authData(dataOf(0, edit)))
      const made = sign(kind === 'EdDSA' ? null : 'sha256', signed(Buffer.concat([data, sha256(client)])), privateKey)
      return finished(
        {
          challenge: options.challenge,
          id: own.id,
          authenticator_data: data,
          client_data_json: client,
          signature: Buffer.from(signature(made)),
        },
        edit,
      )
    },
  })
}

function keyPair(kind: Kind) {
  if (kind === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return kind === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 })
}

function coseOf(kind: Kind, publicKey: ReturnType<typeof keyPair>['publicKey']): Map<Cbor, Cbor> {
  const jwk = publicKey.export({ format: 'jwk' })
  const part = (name: 'x' | 'y' | 'n' | 'e'): Buffer => Buffer.from(jwk[name] ?? '', 'base64url')
  if (kind === 'RS256')
    return new Map<Cbor, Cbor>([
      [1, 3],
      [3, -257],
      [-1, part('n')],
      [-2, part('e')],
    ])
  const isEc = kind === 'ES256'
  const key = new Map<Cbor, Cbor>([
    [1, isEc ? 2 : 1],
    [3, isEc ? -7 : -8],
    [-1, isEc ? 1 : 6],
    [-2, part('x')],
  ])
  return isEc ? key.set(-3, part('y')) : key
}
