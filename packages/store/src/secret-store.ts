/** The secrets of one owner, stored as encrypted values of its durable keys. */
import type { KeyValue, SecretStore } from '@sluice/sdk'
import type { SecretBox } from './secret-box.ts'

/**
 * `keyValue` must hold nothing but secrets, because every key in it is the name of one. `path` binds the values to their place: a
 * value copied to another path does not decrypt. Rejects with the errors of the box and the store.
 */
export const secretStore = (box: SecretBox, keyValue: KeyValue, path = 'secrets'): SecretStore => ({
  async get(name) {
    const text = await keyValue.get(name)
    return typeof text === 'string' ? box.decrypt(text, `${path}.${name}`) : undefined
  },
  set: async (name, value) => keyValue.set(name, box.encrypt(value, `${path}.${name}`)),
  delete: (name) => keyValue.delete(name),
})
