/**
 * Rate limits and lockouts that all nodes of a cluster share. Failures are counted in the database. Calls are counted there once a node has
 * used its free part of a limit, half of the limit divided by the number of nodes. All nodes together may exceed a limit by that half,
 * once in a window.
 */
import { BoundedMap, memoryCounters, TimeRing } from '@sluice/kit'
import type { Counters, Lockout, LockoutOptions, RateLimit, RateLimitOptions } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import { givenTime, sharedTime } from '../connection/shared-time.ts'

const WINDOW_MS = 60_000
/** The moments that a row distinguishes: a larger limit counts in steps of this part of the window. */
const STEPS = 120
const SWEEP_MS = 60_000

const TAKE = `
  SELECT waits_ms AS "waitMs", (SELECT greatest(count(DISTINCT node), 1)::int FROM processes WHERE beat_at > clock_timestamp() - interval '6 seconds') AS nodes
  FROM take_call($1, $2, $3, $4, $5, $6)`
const FAIL = 'SELECT count_failure($1, $2, $3, $4, $5, $6) AS "isTooMany"'
const LEFT = `SELECT locked_until - ${sharedTime('$3')} AS "leftMs" FROM lockouts WHERE lockout = $1 AND key = $2`
const CLEAR = 'DELETE FROM lockouts WHERE lockout = $1 AND key = $2'
const sweep = (table: string, name: string): string => `
  DELETE FROM ${table} WHERE until <= ${sharedTime('$3')}
    OR (${name} = $1 AND until < (SELECT until FROM ${table} WHERE ${name} = $1 ORDER BY until DESC OFFSET $2 LIMIT 1))`
const SWEEP_CALLS = sweep('calls', 'rate_limit')
const SWEEP_LOCKOUTS = sweep('lockouts', 'lockout')

/** A store of a single process answers at once; these answers are promises where the database has to be asked. */
export function sharedCounters(db: Database): Counters {
  const known = memoryCounters(db.clock)
  const made = new BoundedMap<string, RateLimit | Lockout>(1000)
  const keep = <Counter extends RateLimit | Lockout>(name: string, make: () => Counter): Counter => {
    const counter = (made.get(name) as Counter | undefined) ?? make()
    made.set(name, counter)
    return counter
  }
  return {
    rateLimit(name, options) {
      if (options.limit === 0) return known.rateLimit(name, options)
      const full = nameOf(name, options)
      return keep(`calls ${full}`, () => new SharedRateLimit(db, full, options))
    },
    lockout(name, options) {
      const full = nameOf(name, options)
      return keep(`lockout ${full}`, () => new SharedLockout(db, full, options))
    },
  }
}

/** Other numbers start new counts. */
const nameOf = (name: string, numbers: object): string =>
  `${name} ${Object.entries(numbers)
    .toSorted()
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')}`

/** The calls of one key that this node let pass on its own. */
interface Own {
  readonly free: TimeRing
  /** The times of the calls that the database has not counted yet. */
  unreported: number[]
  /** Until then, the database refuses each call. */
  refusedUntilMs: number
}

class SharedRateLimit implements RateLimit {
  readonly #db: Database
  readonly #name: string
  readonly #limit: number
  readonly #own: BoundedMap<string, Own>
  readonly #sweeps: Sweeps
  /** The number of nodes; undefined before the database has told it: until then each call is counted there. */
  #nodes: number | undefined

  constructor(db: Database, name: string, { limit, keysMax }: RateLimitOptions) {
    this.#db = db
    this.#name = name
    this.#limit = limit
    this.#own = new BoundedMap(keysMax)
    this.#sweeps = new Sweeps(db, SWEEP_CALLS, name, keysMax)
  }

  take(key: string): number | Promise<number> {
    const nowMs = this.#db.clock.monotonicMs()
    const own = this.#own.get(key) ?? { free: new TimeRing(this.#limit), unreported: [], refusedUntilMs: 0 }
    this.#own.set(key, own)
    if (own.refusedUntilMs > nowMs) return Math.max(1, Math.ceil((own.refusedUntilMs - nowMs) / 1000))
    own.free.dropUntil(nowMs - WINDOW_MS)
    if (own.free.size < this.#freeCalls) {
      own.free.push(nowMs)
      own.unreported.push(nowMs)
      return 0
    }
    return this.#count(key, own)
  }

  get #freeCalls(): number {
    return this.#nodes === undefined ? 0 : Math.floor(this.#limit / (2 * this.#nodes))
  }

  async #count(key: string, own: Own): Promise<number> {
    const { clock } = this.#db
    const nowMs = clock.monotonicMs()
    const ages = own.unreported.map((atMs) => nowMs - atMs).filter((ageMs) => ageMs < WINDOW_MS)
    own.unreported = []
    const stepMs = this.#limit > STEPS ? WINDOW_MS / STEPS : 1
    const row = await this.#db.get<{ waitMs: number; nodes: number }>(TAKE, this.#name, key, this.#limit, stepMs, givenTime(clock), ages)
    this.#nodes = row?.nodes ?? 1
    this.#sweeps.look()
    const waitMs = row?.waitMs ?? 0
    if (waitMs <= 0) return 0
    own.refusedUntilMs = clock.monotonicMs() + waitMs
    return Math.max(1, Math.ceil(waitMs / 1000))
  }
}

class SharedLockout implements Lockout {
  readonly #db: Database
  readonly #name: string
  readonly #numbers: readonly [number, number, number]
  /** Until when keys are locked out: such a key need not be read again. */
  readonly #lockedUntilMs: BoundedMap<string, number>
  readonly #sweeps: Sweeps

  constructor(db: Database, name: string, { failuresMax, windowMs, lockMs, keysMax }: LockoutOptions) {
    this.#db = db
    this.#name = name
    this.#numbers = [failuresMax, windowMs, lockMs]
    this.#lockedUntilMs = new BoundedMap(keysMax)
    this.#sweeps = new Sweeps(db, SWEEP_LOCKOUTS, name, keysMax)
  }

  async leftSecs(key: string): Promise<number> {
    const { clock } = this.#db
    const known = (this.#lockedUntilMs.get(key) ?? 0) - clock.monotonicMs()
    if (known > 0) return Math.ceil(known / 1000)
    const row = await this.#db.get<{ leftMs: number }>(LEFT, this.#name, key, givenTime(clock))
    const leftMs = row?.leftMs ?? 0
    if (leftMs <= 0) return 0
    this.#lockedUntilMs.set(key, clock.monotonicMs() + leftMs)
    return Math.ceil(leftMs / 1000)
  }

  async fail(key: string): Promise<boolean> {
    this.#sweeps.look()
    const row = await this.#db.get<{ isTooMany: boolean }>(FAIL, this.#name, key, ...this.#numbers, givenTime(this.#db.clock))
    return row?.isTooMany ?? false
  }

  async clear(key: string): Promise<void> {
    this.#lockedUntilMs.delete(key)
    await this.#db.all(CLEAR, this.#name, key)
  }
}

/** Deletes rows that no longer count, and the ones that end first beyond the number of keys, at most once a minute. */
class Sweeps {
  readonly #db: Database
  readonly #statement: readonly [string, string, number]
  #nextMs = 0

  constructor(db: Database, text: string, name: string, keysMax: number) {
    this.#db = db
    this.#statement = [text, name, keysMax]
  }

  look(): void {
    const { clock } = this.#db
    if (clock.monotonicMs() < this.#nextMs) return
    this.#nextMs = clock.monotonicMs() + SWEEP_MS
    // A sweep that fails is repeated by the next one.
    this.#db.all(...this.#statement, givenTime(clock)).catch(() => undefined)
  }
}
