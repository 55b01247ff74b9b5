/** Encryption of small texts at rest: AES-256-GCM under a key file of the data directory. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { createPrivately } from './database.ts'
import { createSecretKey, readSecretKey, type SecretKey } from './secret-key.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `enc:1:<key id>:<base64url of nonce, ciphertext and tag>` */
const FORM = /^enc:1:([0-9a-f]{8}):([A-Za-z0-9_-]+)$/

/**
 * `aad` is the dotted path where the value stands: moved to another path, a value does not decrypt. Every method may throw
 * `config_invalid` for a key file that is unfit; the file is first touched when a value is encrypted or decrypted.
 */
export interface SecretBox {
  /** Makes the key file if there is none. Throws `unavailable` if it cannot. */
  encrypt(plain: string, aad: string): string
  /** Throws `config_invalid` if the key is missing or another one, or the value was changed or moved. Never makes a key. */
  decrypt(text: string, aad: string): string
  /** True for any text in encrypted form, also one of a later release. */
  isEncrypted(text: string): boolean
}

/** `dir` is the data directory; the key is `secret.key` in it. */
export function openSecretBox(dir: string): SecretBox {
  const file = join(dir, 'secret.key')
  let known: SecretKey | undefined

  const keyFor = (keyId: string, path: string): SecretKey => {
    known ??= readSecretKey(file)
    if (!known) throw new AppError('config_invalid', `${path} is encrypted, but its key file ${file} is missing. Restore it from a backup.`)
    if (known.id === keyId) return known
    throw new AppError(
      'config_invalid',
      `${path} was encrypted with key ${keyId}, but ${file} is key ${known.id}. Restore the right key or set the value anew.`,
    )
  }

  return {
    encrypt(plain, aad) {
      known ??= readSecretKey(file) ?? createFirstKey(dir, file)
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', known.bytes, nonce).setAAD(Buffer.from(aad))
      const sealed = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `enc:1:${known.id}:${sealed.toString('base64url')}`
    },
    decrypt(text, aad) {
      const [, keyId = '', encoded = ''] = FORM.exec(text) ?? []
      const sealed = Buffer.from(encoded, 'base64url')
      if (sealed.length < NONCE_BYTES + TAG_BYTES) throw unreadable(aad)
      const { bytes } = keyFor(keyId, aad)
      try {
        const decipher = createDecipheriv('aes-256-gcm', bytes, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
        decipher.setAAD(Buffer.from(aad)).setAuthTag(sealed.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
      } catch {
        throw unreadable(aad)
      }
    },
    isEncrypted: (text) => /^enc:\d+:/.test(text),
  }
}

/** An empty file is a new database: from now on the directory counts as one that is in use. */
function createFirstKey(dir: string, file: string): SecretKey {
  createPrivately(join(dir, 'sluice.db'))
  return createSecretKey(file)
}

const unreadable = (path: string): AppError =>
  new AppError('config_invalid', `${path} cannot be decrypted: it was changed, or moved from another place. Set the value anew.`)
