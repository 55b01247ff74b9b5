/** The account of the bot on its phone: signs the identity of linked devices. Source: `configureSuccessfulPairing` of baileys. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, pbkdf2Sync, randomBytes } from 'node:crypto'
import { Curve, proto } from '@whiskeysockets/baileys'
import { agree, type KeyPair, newKeyPair } from './noise.ts'

const ACCOUNT_PREFIX = Buffer.from([6, 0])
const DEVICE_PREFIX = Buffer.from([6, 1])
/** The alphabet of codes that people type, as in `bytesToCrockford` of baileys. */
const CODE = /^[1-9A-HJ-NP-TV-Z]{8}$/

export class Account {
  readonly keys: KeyPair = newKeyPair()
  #devices = 0

  /** Signs the identity key of a device. */
  sign(identity: Uint8Array): proto.ADVSignedDeviceIdentity {
    const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1_767_225_600, keyIndex: ++this.#devices }).finish()
    return proto.ADVSignedDeviceIdentity.create({
      details,
      accountSignatureKey: this.keys.public,
      accountSignature: Curve.sign(this.keys.private, Buffer.concat([ACCOUNT_PREFIX, details, identity])),
    })
  }

  /** The content of `device-identity` for a device that knows the secret of its QR code. */
  identityFor(identity: Uint8Array, secret: Buffer): Uint8Array {
    const details = proto.ADVSignedDeviceIdentity.encode(this.sign(identity)).finish()
    const hmac = createHmac('sha256', secret).update(details).digest()
    return proto.ADVSignedDeviceIdentityHMAC.encode({ details, hmac }).finish()
  }

  /** Whether a device has signed its identity, as it must before it may log in. */
  hasSigned(content: Uint8Array, identity: Uint8Array): boolean {
    const { details, deviceSignature } = proto.ADVSignedDeviceIdentity.decode(content)
    if (!details || !deviceSignature) return false
    return Curve.verify(identity, Buffer.concat([DEVICE_PREFIX, details, identity, this.keys.public]), deviceSignature)
  }
}

const deriveKey = (code: string, salt: Uint8Array): Buffer => pbkdf2Sync(code, salt, 2 << 16, 32, 'sha256')

function ctr(bytes: Uint8Array, key: Buffer, iv: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-ctr', key, iv)
  return Buffer.concat([cipher.update(bytes), cipher.final()])
}

/** The phone's side of linking by a code, after the person has typed it. Source: the notification `link_code_companion_reg` in baileys. */
export class CodeLink {
  readonly #account: Account
  readonly #ephemeral = newKeyPair()
  readonly #companion: Buffer
  /** The key of the phone, under a key that follows from the code. */
  readonly wrapped: Buffer

  /** `hello` is the key of the device, under a key that follows from the code that the device shows. */
  constructor(account: Account, code: string, hello: Buffer) {
    if (!CODE.test(code)) throw new Error('that is no code of a device')
    this.#account = account
    const [salt, iv, sealed] = [hello.subarray(0, 32), hello.subarray(32, 48), hello.subarray(48, 80)]
    this.#companion = ctr(sealed, deriveKey(code, salt), iv)
    const [ownSalt, ownIv] = [randomBytes(32), randomBytes(16)]
    this.wrapped = Buffer.concat([ownSalt, ownIv, ctr(this.#ephemeral.public, deriveKey(code, ownSalt), ownIv)])
  }

  /** Returns the secret for `identityFor`. Throws if the device used another code. */
  secretOf(bundle: Buffer, identity: Uint8Array): Buffer {
    const [salt, iv, sealed] = [bundle.subarray(0, 32), bundle.subarray(32, 44), bundle.subarray(44)]
    const shared = agree(this.#ephemeral.private, this.#companion)
    const key = Buffer.from(hkdfSync('sha256', shared, salt, 'link_code_pairing_key_bundle_encryption_key', 32))
    const cipher = createDecipheriv('aes-256-gcm', key, iv)
    cipher.setAuthTag(sealed.subarray(-16))
    const plain = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()])
    if (!plain.subarray(0, 32).equals(identity) || !plain.subarray(32, 64).equals(this.#account.keys.public)) throw new Error('other keys')
    const secret = Buffer.concat([shared, agree(this.#account.keys.private, identity), plain.subarray(64, 96)])
    return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(32), 'adv_secret', 32))
  }
}
