/** Encrypts the secrets in a value that is about to be saved. */

import { ENCRYPTED } from '../read/open-secrets.ts'
import { type KeyPath, schemaPath } from '../toml/key-path.ts'
import { childKey, type Key } from '../toml/schema-keys.ts'

/** Encrypts a text for a dotted path, so that it decrypts only there. */
export type Encrypt = (plain: string, path: string) => string | Promise<string>

/** Returns a new value. A text that is already encrypted stays the same. */
export async function sealSecrets(value: unknown, key: Key, path: KeyPath, encrypt: Encrypt): Promise<unknown> {
  if (key.metadata.secret) return typeof value === 'string' && !value.startsWith(ENCRYPTED) ? encrypt(value, schemaPath(path)) : value
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const seal = (child: unknown, step: string | number): unknown => {
    const inner = childKey(key, step)
    return inner ? sealSecrets(child, inner, [...path, step], encrypt) : child
  }
  if (Array.isArray(value)) return Promise.all(value.map(seal))
  const entries = Object.entries(value).map(async ([name, child]) => [name, await seal(child, name)] as const)
  return Object.fromEntries(await Promise.all(entries))
}
