/** The secrets of one owner: encrypted values among its durable keys. */
import type { KeyValue, SecretStore } from '@sluice/sdk'
import type { SecretBox } from './secret-box.ts'

/**
 * `keyValue` should be the secrets' own, since every key in it is the name of one. `path` is where they stand: a value
 * copied to another path does not decrypt. Rejects as the box and the store do.
 */
export const secretStore = (box: SecretBox, keyValue: KeyValue, path = 'secrets'): SecretStore => ({
  async get(name) {
    const text = await keyValue.get(name)
    return typeof text === 'string' ? box.decrypt(text, `${path}.${name}`) : undefined
  },
  set: async (name, value) => keyValue.set(name, box.encrypt(value, `${path}.${name}`)),
  delete: (name) => keyValue.delete(name),
})
