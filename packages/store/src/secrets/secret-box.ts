/** Encrypts small texts at rest with AES-256-GCM and the key file of the data directory. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { createPrivately } from '../connection/database.ts'
import { createSecretKey, readSecretKeys, type SecretKey } from './secret-key.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `enc:1:<key id>:<base64url of nonce, ciphertext and tag>` */
const FORM = /^enc:1:([0-9a-f]{8}):([A-Za-z0-9_-]+)$/

/**
 * `aad` is the dotted path of the value: a value that was moved to another path does not decrypt. Every method may throw
 * `config_invalid` for an invalid key file. The file is first accessed when a value is encrypted or decrypted.
 */
export interface SecretBox {
  /** Creates the key file if it is missing. Throws `unavailable` when it cannot be created. */
  encrypt(plain: string, aad: string): string
  /** Throws `config_invalid` when the key is missing or different, or the value was changed or moved. Never creates a key. */
  decrypt(text: string, aad: string): string
  /** Returns whether the text has the form of an encrypted value, of this or a later release. */
  isEncrypted(text: string): boolean
}

/** The keys of a data directory. Every method may throw `config_invalid` for an invalid key file. */
export interface KeyFile {
  readonly path: string
  /** Returns the key that encrypts now. Creates a missing key, which may throw `unavailable`. */
  current(): SecretKey
  /** Returns the key that encrypts now without creating one. */
  present(): SecretKey | undefined
  find(id: string): SecretKey | undefined
}

export function openKeyFile(dir: string): KeyFile {
  const path = join(dir, 'secret.key')
  let known: readonly SecretKey[] = []
  let version: string | undefined

  /** Reads the file again once it has changed: another process may rotate the key. */
  const keys = (): readonly SecretKey[] => {
    const stat = statSync(path, { throwIfNoEntry: false })
    const found = stat && `${stat.ino} ${stat.mtimeMs} ${stat.size}`
    if (known.length === 0 || (found !== undefined && found !== version)) known = readSecretKeys(path)
    version = found
    return known
  }
  const among = (of: readonly SecretKey[], id: string) => of.find((key) => key.id === id)
  return {
    path,
    current: () => keys()[0] ?? createFirstKey(dir, path),
    present: () => keys()[0],
    find: (id) => among(known, id) ?? among(keys(), id),
  }
}

/** `dir` is the data directory. The key file in it is `secret.key`. */
export function openSecretBox(dir: string): SecretBox {
  const file = openKeyFile(dir)

  const keyFor = (keyId: string, path: string): SecretKey => {
    const key = file.find(keyId)
    if (key) return key
    const own = file.present()
    if (!own)
      throw new AppError('config_invalid', `${path} is encrypted, but its key file ${file.path} is missing. Restore it from a backup.`)
    throw new AppError(
      'config_invalid',
      `${path} was encrypted with key ${keyId}, but ${file.path} is key ${own.id}. Restore the right key or set the value again.`,
    )
  }

  return {
    encrypt(plain, aad) {
      const key = file.current()
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce).setAAD(Buffer.from(aad))
      const sealed = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `enc:1:${key.id}:${sealed.toString('base64url')}`
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

/** Also creates an empty database file: a key file without a database would count as a lost database. */
function createFirstKey(dir: string, file: string): SecretKey {
  createPrivately(join(dir, 'sluice.db'))
  return createSecretKey(file)
}

const unreadable = (path: string): AppError =>
  new AppError('config_invalid', `${path} cannot be decrypted: it was changed, or moved from another path. Set the value again.`)

/** Returns the ids of the keys of a data directory, the one that encrypts first; empty without a key file. Throws as a box does. */
export function secretKeyIds(dir: string): readonly string[] {
  return readSecretKeys(join(dir, 'secret.key')).map(({ id }) => id)
}
