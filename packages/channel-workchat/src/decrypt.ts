/** Encrypted bodies: AES-256-CBC with the SHA-256 of the Encrypt Key, and the initialization vector before the ciphertext. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { AppError } from '@sluice/sdk/webhook'

const ALGORITHM = 'aes-256-cbc'
const BLOCK_BYTES = 16
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

const keyOf = (encryptKey: string): Buffer => createHash('sha256').update(encryptKey).digest()

/** Returns the plain bytes of the value of `encrypt`. Throws `invalid_request` if it was not encrypted with this key. */
export function decrypt(encrypted: string, encryptKey: string): Uint8Array {
  try {
    if (!BASE64.test(encrypted)) throw new RangeError('not base64')
    const bytes = Buffer.from(encrypted, 'base64')
    const decipher = createDecipheriv(ALGORITHM, keyOf(encryptKey), bytes.subarray(0, BLOCK_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(BLOCK_BYTES)), decipher.final()])
  } catch {
    throw new AppError('invalid_request', 'Invalid JSON payload: it is not encrypted with the configured encrypt_key')
  }
}

/** Returns a value of `encrypt`, for requests that try a set-up. */
export function encrypt(plain: string, encryptKey: string): string {
  const iv = randomBytes(BLOCK_BYTES)
  const cipher = createCipheriv(ALGORITHM, keyOf(encryptKey), iv)
  return Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final()]).toString('base64')
}
