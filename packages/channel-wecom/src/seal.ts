/**
 * Encrypted callbacks; see https://developer.work.weixin.qq.com/document/path/90968. A message is encrypted by AES-256-CBC with a random
 * beginning, its length and the id of the receiver, and signed by a SHA-1 over sorted texts.
 */

/** The secrets of a callback. */
export interface SealKeys {
  readonly token: () => string
  /** The EncodingAESKey: base64 of 32 bytes without its last character. */
  readonly aesKey: () => string
}

export interface Opened {
  readonly message: string
  /** The id of the organisation that the message is for. */
  readonly receiver: string
}

const BLOCK_BYTES = 32
const RANDOM_BYTES = 16
const LENGTH_BYTES = 4
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Loads the module at the first signature, as `hmac.ts` of the SDK does. */
const crypto = () => process.getBuiltinModule('node:crypto')

/** Returns the signature of a callback in lower-case hex. */
export const signatureOf = ({ token }: SealKeys, timestamp: string, nonce: string, encrypted: string): string =>
  crypto().hash('sha1', [token(), timestamp, nonce, encrypted].sort().join(''), 'hex')

/** Decrypts a message. Throws a `RangeError` for a text that was not encrypted with the key. */
export function open({ aesKey }: SealKeys, encrypted: string): Opened {
  const bytes = Buffer.from(encrypted, 'base64')
  if (bytes.length === 0 || bytes.length % BLOCK_BYTES !== 0 || bytes.toString('base64') !== encrypted)
    throw new RangeError('no encrypted text')
  const plain = unpadded(decrypted(keyOf(aesKey()), bytes))
  const from = RANDOM_BYTES + LENGTH_BYTES
  if (plain.length < from) throw new RangeError('the text is too short')
  const to = from + plain.readUInt32BE(RANDOM_BYTES)
  if (to > plain.length) throw new RangeError('the length is wrong')
  return { message: utf8.decode(plain.subarray(from, to)), receiver: utf8.decode(plain.subarray(to)) }
}

/** Encrypts a message as WeCom does. */
export function seal({ aesKey }: SealKeys, message: string, receiver: string): string {
  const words = Buffer.from(message)
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(words.length)
  const plain = Buffer.concat([crypto().randomBytes(RANDOM_BYTES), length, words, Buffer.from(receiver)])
  const count = BLOCK_BYTES - (plain.length % BLOCK_BYTES)
  const key = keyOf(aesKey())
  const cipher = crypto().createCipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false)
  return Buffer.concat([cipher.update(Buffer.concat([plain, Buffer.alloc(count, count)])), cipher.final()]).toString('base64')
}

/** Decrypts the file of an AI bot's message with the key that came with its address. Throws a `RangeError`. */
export function openFile(key: string, bytes: Uint8Array): Buffer {
  const secret = Buffer.from(key, 'base64')
  if (secret.length !== 32 || bytes.length === 0 || bytes.length % 16 !== 0) throw new RangeError('no encrypted file')
  return unpadded(decrypted(secret, bytes))
}

const keyOf = (aesKey: string): Buffer => Buffer.from(`${aesKey}=`, 'base64')

function decrypted(key: Buffer, bytes: Uint8Array): Buffer {
  const decipher = crypto().createDecipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false)
  return Buffer.concat([decipher.update(bytes), decipher.final()])
}

/** The padding fills blocks of 32 bytes, and each of its bytes is its length. */
function unpadded(plain: Buffer): Buffer {
  const count = plain.at(-1) ?? 0
  if (count < 1 || count > BLOCK_BYTES || count > plain.length) throw new RangeError('the padding is wrong')
  if (!plain.subarray(-count).every((byte) => byte === count)) throw new RangeError('the padding is wrong')
  return plain.subarray(0, -count)
}
