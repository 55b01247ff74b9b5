/** The port of keys that are valid once and for a short time, on every node of a cluster: challenges, codes of sign-in links. */

export interface OneTimeKeyOptions {
  readonly ttlMs: number
  /** The keys that one owner may have; a further one drops its oldest. */
  readonly perOwnerMax: number
  /** The keys of all owners together; a further one drops the oldest. */
  readonly allMax: number
}

export interface OneTimeKeys<Value> {
  /** Keeps a key of an owner with a value that has a JSON form. */
  add(owner: string, key: string, value: Value): Promise<void>
  /** Removes a key and resolves to its value; to undefined when it is unknown, used, expired or of another owner. */
  take(owner: string, key: string): Promise<Value | undefined>
}

/** Returns the keys of a purpose. Their hashes are kept, but not the keys themselves. They may be forgotten at any time. */
export type OneTimeKeysOf = <Value>(purpose: string, options: OneTimeKeyOptions) => OneTimeKeys<Value>
