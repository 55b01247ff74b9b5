/**
 * The server's side of the handshake Noise_XX_25519_AESGCM_SHA256 and of the frames after it, with the cryptography of Node. Source:
 * https://noiseprotocol.org/noise.html, and `makeNoiseHandler` of baileys for the prefix, the certificates and the frames.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { type BinaryNode, Curve, decodeBinaryNode, encodeBinaryNode, proto } from '@whiskeysockets/baileys'

const PATTERN = Buffer.from('Noise_XX_25519_AESGCM_SHA256\0\0\0\0')
const PROLOGUE = Buffer.from([87, 65, 6, 3])
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex')
const SPKI = Buffer.from('302a300506032b656e032100', 'hex')
const TAG_BYTES = 16
const NOTHING = Buffer.alloc(0)

export interface KeyPair {
  readonly private: Buffer
  readonly public: Buffer
}

const privateKey = (bytes: Uint8Array): KeyObject => createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: 'der', type: 'pkcs8' })

const rawPublic = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(SPKI.length)

export function keyPairOf(bytes: Uint8Array): KeyPair {
  return { private: Buffer.from(bytes), public: rawPublic(createPublicKey(privateKey(bytes))) }
}

export function newKeyPair(): KeyPair {
  const pair = generateKeyPairSync('x25519')
  return { private: pair.privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(PKCS8.length), public: rawPublic(pair.publicKey) }
}

export const agree = (own: Uint8Array, other: Uint8Array): Buffer =>
  diffieHellman({
    privateKey: privateKey(own),
    publicKey: createPublicKey({ key: Buffer.concat([SPKI, other]), format: 'der', type: 'spki' }),
  })

const nonce = (counter: number): Buffer => {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(counter, 8)
  return bytes
}

function seal(key: Buffer, counter: number, plain: Uint8Array, associated: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce(counter)).setAAD(associated)
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

function open(key: Buffer, counter: number, sealed: Uint8Array, associated: Buffer): Buffer {
  const cipher = createDecipheriv('aes-256-gcm', key, nonce(counter)).setAAD(associated)
  cipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([cipher.update(sealed.subarray(0, -TAG_BYTES)), cipher.final()])
}

/** The root of the certificates of all fakes: a fixed key, because a process trusts one root. */
export const ROOT = keyPairOf(createHash('sha256').update('the root of a fake server').digest())
const STATIC = keyPairOf(createHash('sha256').update('the static key of a fake server').digest())
const INTERMEDIATE = keyPairOf(createHash('sha256').update('the intermediate key of a fake server').digest())

function certificates(): Uint8Array {
  const { Details } = proto.CertChain.NoiseCertificate
  const intermediate = Details.encode({ serial: 1, issuerSerial: 0, key: INTERMEDIATE.public }).finish()
  const leaf = Details.encode({ serial: 2, issuerSerial: 1, key: STATIC.public }).finish()
  return proto.CertChain.encode({
    intermediate: { details: intermediate, signature: Curve.sign(ROOT.private, intermediate) },
    leaf: { details: leaf, signature: Curve.sign(INTERMEDIATE.private, leaf) },
  }).finish()
}

const CERTIFICATES = certificates()

/** The state of one handshake. */
class Handshake {
  #hash: Buffer = PATTERN
  #salt: Buffer = PATTERN
  #key: Buffer = PATTERN
  #counter = 0

  mixHash(bytes: Uint8Array): void {
    this.#hash = createHash('sha256').update(this.#hash).update(bytes).digest()
  }

  mixKey(secret: Uint8Array): void {
    const [salt, key] = this.#derive(secret)
    this.#salt = salt
    this.#key = key
    this.#counter = 0
  }

  seal(plain: Uint8Array): Buffer {
    const sealed = seal(this.#key, this.#counter++, plain, this.#hash)
    this.mixHash(sealed)
    return sealed
  }

  open(sealed: Uint8Array): Buffer {
    const plain = open(this.#key, this.#counter++, sealed, this.#hash)
    this.mixHash(sealed)
    return plain
  }

  /** Returns the keys of the client's and of the server's frames. */
  split(): readonly [Buffer, Buffer] {
    return this.#derive(NOTHING)
  }

  #derive(secret: Uint8Array): readonly [Buffer, Buffer] {
    const bytes = Buffer.from(hkdfSync('sha256', secret, this.#salt, '', 64))
    return [bytes.subarray(0, 32), bytes.subarray(32)]
  }
}

export interface ClientHandlers {
  /** The handshake has ended. */
  onLogin(payload: proto.ClientPayload, noiseKey: Buffer): void
  onNode(node: BinaryNode): void
}

/** The encryption of one connection. `write` sends bytes to the client. */
export class NoiseServer {
  readonly #write: (bytes: Buffer) => void
  readonly #handlers: ClientHandlers
  readonly #handshake = new Handshake()
  readonly #ephemeral = newKeyPair()
  #bytes: Buffer = NOTHING
  #step: 'prologue' | 'hello' | 'finish' | 'frames' = 'prologue'
  #keys: readonly [Buffer, Buffer] = [NOTHING, NOTHING]
  #read = 0
  #written = 0
  /** Frames are decoded one after the other. */
  #decoding: Promise<void> = Promise.resolve()

  constructor(write: (bytes: Buffer) => void, handlers: ClientHandlers) {
    this.#write = write
    this.#handlers = handlers
  }

  take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    if (this.#step === 'prologue') this.#readPrologue()
    if (this.#step === 'prologue') return
    while (this.#bytes.length >= 3) {
      const length = this.#bytes.readUIntBE(0, 3)
      if (this.#bytes.length < length + 3) return
      const frame = this.#bytes.subarray(3, length + 3)
      this.#bytes = this.#bytes.subarray(length + 3)
      this.#takeFrame(frame)
    }
  }

  send(node: BinaryNode): void {
    this.#frame(seal(this.#keys[1], this.#written++, encodeBinaryNode(node), NOTHING))
  }

  /** A client with routing information for its server sends it in front: `ED`, two bytes, a length of three bytes, the information. */
  #readPrologue(): void {
    let at = 0
    if (this.#bytes.subarray(0, 2).toString() === 'ED') {
      if (this.#bytes.length < 7) return
      at = 7 + this.#bytes.readUIntBE(4, 3)
    }
    if (this.#bytes.length < at + PROLOGUE.length) return
    if (!this.#bytes.subarray(at, at + PROLOGUE.length).equals(PROLOGUE)) throw new Error('the client speaks another protocol')
    this.#bytes = this.#bytes.subarray(at + PROLOGUE.length)
    this.#step = 'hello'
    this.#handshake.mixHash(PROLOGUE)
  }

  #takeFrame(frame: Buffer): void {
    if (this.#step === 'hello') return void this.#hello(frame)
    if (this.#step === 'finish') return void this.#finish(frame)
    const plain = open(this.#keys[0], this.#read++, frame, NOTHING)
    this.#decoding = this.#decoding.then(async () => this.#handlers.onNode(await decodeBinaryNode(plain)))
  }

  #hello(frame: Buffer): void {
    const ephemeral = proto.HandshakeMessage.decode(frame).clientHello?.ephemeral
    if (!ephemeral) throw new Error('the client sent no key')
    const handshake = this.#handshake
    handshake.mixHash(ephemeral)
    handshake.mixHash(this.#ephemeral.public)
    handshake.mixKey(agree(this.#ephemeral.private, ephemeral))
    const sealedStatic = handshake.seal(STATIC.public)
    handshake.mixKey(agree(STATIC.private, ephemeral))
    const payload = handshake.seal(CERTIFICATES)
    this.#step = 'finish'
    this.#frame(
      proto.HandshakeMessage.encode({ serverHello: { ephemeral: this.#ephemeral.public, static: sealedStatic, payload } }).finish(),
    )
  }

  #finish(frame: Buffer): void {
    const finish = proto.HandshakeMessage.decode(frame).clientFinish
    if (!finish?.static || !finish.payload) throw new Error('the client did not finish the handshake')
    const noiseKey = this.#handshake.open(finish.static)
    this.#handshake.mixKey(agree(this.#ephemeral.private, noiseKey))
    const payload = proto.ClientPayload.decode(this.#handshake.open(finish.payload))
    this.#keys = this.#handshake.split()
    this.#step = 'frames'
    this.#handlers.onLogin(payload, noiseKey)
  }

  #frame(bytes: Uint8Array): void {
    const header = Buffer.alloc(3)
    header.writeUIntBE(bytes.length, 0, 3)
    this.#write(Buffer.concat([header, bytes]))
  }
}
