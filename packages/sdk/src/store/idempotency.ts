/** The port of idempotency keys (docs/contract.md#idempotency). */

export interface IdempotencyKey {
  /** A hash of the credential, and the route. */
  readonly scope: string
  readonly key: string
}

/** The result of a claim: `claimed` by this caller, `in_flight` in another request, or `done` within the window. */
export type Claim = 'claimed' | 'in_flight' | 'done'

export interface IdempotencyStore {
  /**
   * Claims a key atomically. A claim is in memory until its turn is stored or ends, and a crash before that releases it. Of two
   * processes that claim one key at once, the second one to store its turn is refused with `conflict`. At most
   * `keysMax` keys are remembered; the oldest are dropped first, those in flight last. A key in flight does not expire; a done key
   * expires `ttlMs` after its turn ended.
   */
  claim(key: IdempotencyKey, limits: { readonly ttlMs: number; readonly keysMax: number }): Claim | Promise<Claim>
  /** Returns the turn of a claimed key; undefined before the turn exists, and when a procedure accepted the request. */
  turnOf(key: IdempotencyKey): string | undefined | Promise<string | undefined>
  /** Releases a claimed key. A done key stays, and only the end of its turn releases the key of a stored turn. */
  release(key: IdempotencyKey): void | Promise<void>
}
