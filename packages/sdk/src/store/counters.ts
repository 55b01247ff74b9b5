/**
 * The port of counters that all processes of a store share: rate limits and lockouts. They are forgotten when all processes have
 * stopped. A store for one process counts in memory and answers at once.
 */

export interface RateLimitOptions {
  /** The most calls of one key within any 60 s; 0 means no limit. */
  readonly limit: number
  /** The number of keys that are remembered. */
  readonly keysMax: number
}

export interface RateLimit {
  /** Returns 0 and counts the call, or returns the whole seconds until the next call is possible and counts nothing. */
  take(key: string): number | Promise<number>
}

export interface LockoutOptions {
  /** The number of failures within `windowMs` that lock a key out. */
  readonly failuresMax: number
  readonly windowMs: number
  /** The duration of a lockout; 0 only reports that there were too many failures. */
  readonly lockMs: number
  /** The number of keys that are remembered; the first one seen is forgotten first. */
  readonly keysMax: number
}

export interface Lockout {
  /** Returns the whole seconds for which the key is still locked out; 0 when it is not. */
  leftSecs(key: string): number | Promise<number>
  /** Counts a failure. Returns true when this failure was one too many; counting then restarts. */
  fail(key: string): boolean | Promise<boolean>
  /** Forgets the failures of a key. */
  clear(key: string): void | Promise<void>
}

export interface Counters {
  /** Returns the rate limit of this name. Calls with the same numbers share its counts; other numbers start new counts. */
  rateLimit(name: string, options: RateLimitOptions): RateLimit
  /** Returns the lockout of this name, on the same terms as `rateLimit`. */
  lockout(name: string, options: LockoutOptions): Lockout
}
