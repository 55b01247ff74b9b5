/** The secrets of one owner, stored as encrypted values of its durable keys. */
import type { KeyValue, SecretStore } from '@sluice/sdk'
import type { SecretBox } from './secret-box.ts'

/**
 * `keyValue` must hold nothing but secrets, because every key in it is the name of one. `path` binds the values to their place: a
 * value copied to another path does not decrypt. Rejects with the errors of the box and the store.
 */
export function secretStore(box: SecretBox, keyValue: KeyValue, path = 'secrets'): SecretStore {
  const encrypt = (name: string, value: string): string => box.encrypt(value, `${path}.${name}`)
  const decrypt = (name: string, text: unknown): string | undefined =>
    typeof text === 'string' ? box.decrypt(text, `${path}.${name}`) : undefined
  return {
    get: async (name) => decrypt(name, await keyValue.get(name)),
    set: async (name, value) => keyValue.set(name, encrypt(name, value)),
    delete: (name) => keyValue.delete(name),
    async swap(name, before, after) {
      // The same secret has another text each time it is encrypted, so the stored text itself is compared.
      const text = await keyValue.get(name)
      if (decrypt(name, text) !== before) return false
      return keyValue.swap(name, text, after === undefined ? undefined : encrypt(name, after))
    },
    setAll: async (changes) =>
      keyValue.setAll(new Map(Array.from(changes, ([name, value]) => [name, value === undefined ? undefined : encrypt(name, value)]))),
    async list(prefix, limit) {
      const rows = await keyValue.list(prefix, limit)
      return rows.map(({ key, value }) => ({ name: key, value: decrypt(key, value) ?? '' }))
    },
  }
}
