/** The encryption of a push message for one browser: RFC 8291, with the content encoding `aes128gcm` of RFC 8188 in one record. */
import { createCipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'

/** The keys that a browser supplies with its subscription. */
export interface BrowserKeys {
  /** Its P-256 public key: 65 bytes, uncompressed. */
  readonly p256dh: Uint8Array
  /** Its authentication secret: 16 bytes. */
  readonly auth: Uint8Array
}

/** The random parts of a message. */
export interface MessageKeys {
  /** A P-256 private key. */
  readonly privateKey: Uint8Array
  /** 16 bytes. */
  readonly salt: Uint8Array
}

const CURVE = 'prime256v1'
const KEY_BYTES = 65
const AUTH_BYTES = 16
const SALT_BYTES = 16
const TAG_BYTES = 16
/** Push services accept bodies up to this size, and it is the size of the one record. */
const BODY_BYTES_MAX = 4096
const HEADER_BYTES = SALT_BYTES + 4 + 1 + KEY_BYTES
/** The end of the last record. */
const DELIMITER = Uint8Array.of(2)

/** The largest message in bytes. */
export const MESSAGE_BYTES_MAX = BODY_BYTES_MAX - HEADER_BYTES - DELIMITER.length - TAG_BYTES

const freshKeys = (): MessageKeys => {
  const own = createECDH(CURVE)
  own.generateKeys()
  return { privateKey: own.getPrivateKey(), salt: randomBytes(SALT_BYTES) }
}

const derive = (from: Uint8Array, salt: Uint8Array, info: Uint8Array, bytes: number): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', from, salt, info, bytes))

/** Whether a message can be encrypted for these keys: the key is a point of the curve. */
export function areBrowserKeys({ p256dh, auth }: BrowserKeys): boolean {
  if (p256dh.length !== KEY_BYTES || p256dh[0] !== 4 || auth.length !== AUTH_BYTES) return false
  const own = createECDH(CURVE)
  own.generateKeys()
  try {
    own.computeSecret(p256dh)
    return true
  } catch {
    return false
  }
}

/** Returns the body of the request to the push service. Throws for a message above `MESSAGE_BYTES_MAX` and for invalid keys. */
export function encryptMessage(
  message: Uint8Array,
  { p256dh, auth }: BrowserKeys,
  keys: MessageKeys = freshKeys(),
): Uint8Array<ArrayBuffer> {
  if (message.length > MESSAGE_BYTES_MAX)
    throw new RangeError(`A push message has at most ${MESSAGE_BYTES_MAX} bytes; got ${message.length}`)
  const own = createECDH(CURVE)
  own.setPrivateKey(keys.privateKey)
  const ownPublic = own.getPublicKey()
  const shared = own.computeSecret(p256dh)
  const secret = derive(shared, auth, Buffer.concat([Buffer.from('WebPush: info\0'), p256dh, ownPublic]), 32)
  const key = derive(secret, keys.salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const nonce = derive(secret, keys.salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const encrypted = [cipher.update(message), cipher.update(DELIMITER), cipher.final(), cipher.getAuthTag()]
  const recordSize = Buffer.alloc(4)
  recordSize.writeUInt32BE(BODY_BYTES_MAX)
  return Buffer.concat([keys.salt, recordSize, Uint8Array.of(ownPublic.length), ownPublic, ...encrypted])
}
