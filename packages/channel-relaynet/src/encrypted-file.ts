/** Encrypted files of kind 15: their description in a message, and the encryption with AES-256-GCM that clients use. */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, equalDigests, sha256Hex } from '@sluice/sdk'
import { type Rumor, tagValue } from './event.ts'

export interface EncryptedFile {
  readonly url: string
  /** 32 bytes in hex. */
  readonly key: string
  /** 12 or 16 bytes in hex. */
  readonly nonce: string
  /** The SHA-256 of the encrypted bytes, or of the plain ones: clients differ. */
  readonly hash?: string
}

const ALGORITHM = 'aes-256-gcm'
const TAG_BYTES = 16
const KEY = /^[0-9a-f]{64}$/i
const NONCE = /^(?:[0-9a-f]{24}|[0-9a-f]{32})$/i
const HASH = /^[0-9a-f]{64}$/i

/** Returns the file of a message; undefined if it has no usable address, or is encrypted in a way that is not supported. */
export function fileIn(rumor: Rumor): EncryptedFile | undefined {
  if (tagValue(rumor, 'encryption-algorithm')?.toLowerCase() !== 'aes-gcm') return undefined
  const [key, nonce, hash] = ['decryption-key', 'decryption-nonce', 'x'].map((name) => tagValue(rumor, name) ?? '')
  return checked({ url: rumor.content.trim(), key, nonce, x: hash })
}

/** The address and key of the file, as the id of an attachment. */
export const encodeFile = ({ url, key, nonce, hash }: EncryptedFile): string => JSON.stringify({ url, key, nonce, x: hash })

export const decodeFile = (id: string): EncryptedFile | undefined => checked(members(parsedOrUndefined(id)))

function checked(json: { readonly url?: unknown; readonly key?: unknown; readonly nonce?: unknown; readonly x?: unknown }) {
  const [url, key, nonce, hash] = [json.url, json.key, json.nonce, json.x].map(text) as [string, string, string, string]
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '') || !KEY.test(key) || !NONCE.test(nonce)) return undefined
  return { url, key, nonce, ...(HASH.test(hash) && { hash: hash.toLowerCase() }) }
}

/** Returns the encrypted bytes, which end with the tag. */
export function encryptFile(bytes: Uint8Array, key: Uint8Array, nonce: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Returns the plain bytes. Throws `invalid_request` when the bytes do not match the message. */
export function decryptFile(encrypted: Uint8Array, { key, nonce, hash }: EncryptedFile): Buffer {
  const wrong = new AppError('invalid_request', 'The file is not the one that the message describes')
  if (encrypted.length < TAG_BYTES) throw wrong
  const decipher = createDecipheriv(ALGORITHM, Buffer.from(key, 'hex'), Buffer.from(nonce, 'hex'), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(encrypted.subarray(-TAG_BYTES))
  let plain: Buffer
  try {
    plain = Buffer.concat([decipher.update(encrypted.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch {
    throw wrong
  }
  const hashes = [encrypted, plain].map((bytes) => Buffer.from(sha256Hex(bytes), 'hex'))
  if (hash !== undefined && !hashes.some((one) => equalDigests(one, Buffer.from(hash, 'hex')))) throw wrong
  return plain
}
