/**
 * The leases of sessions, `session/<session>`, under which turns run that clients wait for. They come and go with each turn, so that one
 * grouped statement takes them and another one releases them. A holder learns of waiting processes, and the longest wait goes first.
 */
import { EventEmitter } from 'node:events'
import { BoundedMap } from '@sluice/kit'
import { type BeginningTurn, type ClusterTurns, type Lease, type LeaseName, type Logger, shardOfTurn } from '@sluice/sdk'
import { sql } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Kind } from '../connection/group-commit.ts'
import type { Leases } from './leases.ts'
import { isAliveProcess } from './live-process.ts'
import type { Notices, SessionNotice } from './notices.ts'
import { LOCK } from './take-leases.ts'

const PREFIX = 'session/'
/** How long a process that waits does without a notice. */
const POLL_MS = 250
/** For how long a session that others wait for is left to the one that waits longest, and to the others before its earlier holder. */
const FIRST_MS = 100
const OTHERS_MS = 300
const RETRY_MS = 1000
const YIELD_POLL_MS = 20
/** The number of sessions that are left to other processes at once. */
const YIELDING_MAX = 1000

/**
 * True while a stored turn of the session goes first, which is one that was stored before all turns of this process in it: a process has an
 * order of its own for its turns. A turn that was left behind is outside of that order, and goes by the order in which turns were stored.
 */
const goesAfter = (turn: string, session: string, shard: string, process: string, leftBehind: string): string => {
  const isOpen = (row: string): string =>
    `${row}.ended_at IS NULL AND ${row}.inbox IS NULL AND ${row}.shard = ${shard} AND ${row}.session_id = ${session}`
  const isOwn = (row: string): string =>
    `(${row}.id = ${turn} OR ${row}.process IS NOT DISTINCT FROM ${process} AND NOT ARRAY[${row}.id, ${turn}] && ${leftBehind})`
  const place = (row: string): string => `(coalesce(${row}.place, 0), ${row}.created_at, ${row}.id)`
  return `EXISTS (
    SELECT 1 FROM turns AS earlier WHERE ${isOpen('earlier')} AND NOT ${isOwn('earlier')} AND NOT EXISTS (
      SELECT 1 FROM turns AS own WHERE ${isOpen('own')} AND ${isOwn('own')} AND ${place('own')} < ${place('earlier')}))`
}
const TAKE = `
  INSERT INTO leases (name, epoch, process, turn, owner)
  SELECT name, nextval('epochs'), $6, turn, owner
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[]) AS asked (name, turn, owner, session, shard)
  WHERE NOT ${goesAfter('asked.turn', 'asked.session', 'asked.shard', '$6', '$7::text[]')}
  ORDER BY name ON CONFLICT DO NOTHING RETURNING name, epoch`
const GOES_AFTER = `SELECT 1 WHERE ${goesAfter('$1', '$2', '$3::smallint', '$4', '$5::text[]')}`
const TAKEN = 'SELECT name, epoch FROM leases WHERE process = $1 AND turn = ANY ($2::text[])'
const HOLDER = `SELECT epoch, process, ${isAliveProcess('leases.process')} AS "isAlive" FROM leases WHERE name = $1`
// A row that a stopped process has locked stays its own until the server ends its transaction.
const LOCK_DEAD = `
  SELECT epoch FROM leases WHERE name = $1 AND epoch = $2 AND (process = $3 OR NOT ${isAliveProcess('leases.process')})
  FOR UPDATE OF leases SKIP LOCKED`
const TAKE_OVER = `
  UPDATE leases SET epoch = nextval('epochs'), process = $2, turn = $3, owner = $4, abort_requested = false WHERE name = $1 RETURNING epoch`
const RELEASE = 'DELETE FROM leases WHERE epoch IN (SELECT epoch FROM leases WHERE epoch = ANY ($1::bigint[]) ORDER BY epoch FOR UPDATE)'
/** Sessions whose process died and that no process has requested since. */
const DROP_DEAD = `
  DELETE FROM leases WHERE epoch IN (
    SELECT epoch FROM leases WHERE starts_with(name, '${PREFIX}') AND NOT ${isAliveProcess('leases.process')} FOR UPDATE OF leases SKIP LOCKED)`
const REQUEST_ABORT = `
  UPDATE leases SET abort_requested = true WHERE turn = $1 AND ($2::text IS NULL OR owner = $2) RETURNING epoch`
const ABORTS = 'SELECT turn FROM leases WHERE process = $1 AND abort_requested AND turn IS NOT NULL'

const RUNS = `SELECT 1 FROM leases WHERE turn = $1 AND ${isAliveProcess('leases.process')} LIMIT 1`

interface Asked {
  readonly name: LeaseName
  readonly turn: BeginningTurn
}

interface Taken {
  readonly name: string
  readonly epoch: number
}

interface Holder {
  readonly epoch: number
  readonly process: string
  readonly isAlive: boolean
}

export interface SessionLeasesOptions {
  readonly db: Database
  readonly leases: Leases
  readonly notices: Notices
  readonly log: Logger
  readonly process: string
}

export class SessionLeases implements Omit<ClusterTurns, 'abandoned'> {
  readonly leftBehind = new Set<string>()
  readonly #options: SessionLeasesOptions
  readonly #kind: Kind<Asked, number | undefined>
  /** Emits the name of a session that may be free. */
  readonly #free = new EventEmitter().setMaxListeners(0)
  /** The processes that wait for a lease of this process, by its epoch, with the time since when they do. */
  readonly #waiting = new Map<number, Map<string, number>>()
  /** Until when another process goes first, by the name of the lease. */
  readonly #yielding = new BoundedMap<string, number>(YIELDING_MAX)
  /** Set once the sessions of dead processes were dropped. */
  #dropping: Promise<unknown> | undefined
  #isClosed = false

  constructor(options: SessionLeasesOptions) {
    this.#options = options
    this.#kind = takeKind(options.process, this.leftBehind)
    options.notices.listenToAll((notice, from) => this.#heard(notice as SessionNotice, from))
  }

  async begin(turn: BeginningTurn, { signal, onWait }: Parameters<ClusterTurns['begin']>[1]): Promise<Lease> {
    const name: LeaseName = `${PREFIX}${turn.session ?? turn.id}`
    const { leases } = this.#options
    signal.throwIfAborted()
    await leases.start()
    this.#dropping ??= this.#dropDead().catch(() => undefined)
    const startedMs = performance.now()
    let hasWaited = false
    for (;;) {
      await this.#yield(name, signal)
      const epoch = await this.#take(name, turn)
      if (epoch !== undefined) return this.#grant(name, epoch, signal)
      if (!hasWaited) onWait()
      hasWaited = true
      await this.#wait(name, signal, startedMs)
      signal.throwIfAborted()
    }
  }

  async requestAbort(id: string, owner?: string): Promise<boolean> {
    return (await this.#options.db.writer.write(sql(REQUEST_ABORT, id, owner ?? null))).length > 0
  }

  isRunning = async (id: string): Promise<boolean> => (await this.#options.db.get(RUNS, id)) !== undefined

  async abortsRequested(): Promise<readonly string[]> {
    return (await this.#options.db.all<{ turn: string }>(ABORTS, this.#options.process)).map(({ turn }) => turn)
  }

  close(): void {
    this.#isClosed = true
  }

  #dropDead(): Promise<unknown> {
    return this.#options.db.writer.transaction(async (tx) => {
      await tx.all(LOCK)
      return tx.all(DROP_DEAD)
    })
  }

  async #take(name: LeaseName, turn: BeginningTurn): Promise<number | undefined> {
    const { db, leases, process } = this.#options
    const epoch = await db.writer.add(this.#kind, { name, turn })
    if (epoch !== undefined) return epoch
    const holder = await db.get<Holder>(HOLDER, name)
    if (!holder) return undefined
    const isLeft = holder.process === process && !leases.holds(holder.epoch)
    if (holder.isAlive && !isLeft) return undefined
    return db.writer.transaction(async (tx) => {
      const about = [turn.id, turn.session, shardOfTurn(turn.session, turn.id), process, [...this.leftBehind]]
      await tx.all(LOCK)
      if (await tx.get(GOES_AFTER, ...about)) return undefined
      if (!(await tx.get(LOCK_DEAD, name, holder.epoch, process))) return undefined
      return (await tx.get<{ epoch: number }>(TAKE_OVER, name, process, turn.id, turn.owner ?? null))?.epoch
    })
  }

  async #grant(name: LeaseName, epoch: number, signal: AbortSignal): Promise<Lease> {
    this.#yielding.delete(name)
    const lease = this.#options.leases.hold({ name, epoch, shards: null }, () => this.#release(name, epoch))
    if (!signal.aborted) return lease
    await lease.release()
    throw signal.reason
  }

  /** Ends a lease after the writes under it, and tells the process that has waited longest. */
  async #release(name: string, epoch: number): Promise<void> {
    const { db, notices, log } = this.#options
    if (this.#waiting.has(epoch)) this.#yielding.set(name, performance.now() + OTHERS_MS)
    for (let attempt = 1; ; attempt++) {
      try {
        await db.writer.add(RELEASE_KIND, { name, epoch })
        break
      } catch (error) {
        if (this.#isClosed) break
        if (attempt === 1) log.warn('the session of a turn that has ended was not released; it is tried again', { lease: name, error })
        await sleep(RETRY_MS)
      }
    }
    const [longest] = [...(this.#waiting.get(epoch) ?? [])].toSorted(([, a], [, b]) => a - b)
    this.#waiting.delete(epoch)
    if (longest) notices.send({ what: 'session free', name, next: longest[0] })
  }

  /** Leaves the session to another process that has waited longer, for a moment. */
  async #yield(name: string, signal: AbortSignal): Promise<void> {
    for (let untilMs = this.#yielding.get(name); untilMs !== undefined && performance.now() < untilMs; untilMs = this.#yielding.get(name)) {
      if (await this.#options.db.get(HOLDER, name)) break
      await sleep(YIELD_POLL_MS)
      signal.throwIfAborted()
    }
    this.#yielding.delete(name)
  }

  /** Waits until the session may be free. Tells its holder that this process waits. */
  async #wait(name: string, signal: AbortSignal, startedMs: number): Promise<void> {
    const { db, notices, process } = this.#options
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, POLL_MS)
    const abort = (): void => resolve()
    const free = (isFirst: boolean): void => void setTimeout(resolve, isFirst ? 0 : FIRST_MS)
    this.#free.once(name, free)
    signal.addEventListener('abort', abort, { once: true })
    try {
      const holder = await db.get<Holder>(HOLDER, name)
      // It is free now, or a turn that does not run yet goes first.
      if (!holder) return await sleep(YIELD_POLL_MS)
      if (holder.process !== process) {
        notices.send({ what: 'session wanted', epoch: holder.epoch, waitedMs: Math.round(performance.now() - startedMs) })
      }
      await promise
    } finally {
      clearTimeout(timer)
      this.#free.off(name, free)
      signal.removeEventListener('abort', abort)
    }
  }

  #heard(notice: SessionNotice, from: string): void {
    const { leases, process } = this.#options
    if (notice.what === 'session free') this.#free.emit(notice.name, notice.next === process)
    if (notice.what !== 'session wanted' || !leases.holds(notice.epoch)) return
    if (this.#waiting.size >= YIELDING_MAX)
      for (const epoch of [...this.#waiting.keys()]) if (!leases.holds(epoch)) this.#waiting.delete(epoch)
    const waiting = this.#waiting.get(notice.epoch) ?? new Map<string, number>()
    this.#waiting.set(notice.epoch, waiting)
    if (!waiting.has(from)) waiting.set(from, performance.now() - notice.waitedMs)
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())

/** Releases share a statement, after the requests under the leases and before another turn takes the session. */
const RELEASE_KIND: Kind<Taken, undefined> = {
  keys: ({ name }) => [name],
  statements: (all) => [
    sql(
      RELEASE,
      all.map(({ epoch }) => epoch),
    ),
  ],
  results: (all) => all.map(() => undefined),
  readAgain: () => [],
}

/** Takes free sessions for this process. A result is undefined where the session is not free. */
const takeKind = (process: string, leftBehind: ReadonlySet<string>): Kind<Asked, number | undefined> => ({
  keys: ({ name }) => [name],
  statements: (all) => [
    sql(
      TAKE,
      ...columnsOf(
        all,
        ({ name }) => name,
        ({ turn }) => turn.id,
        ({ turn }) => turn.owner ?? null,
        ({ turn }) => turn.session,
        ({ turn }) => shardOfTurn(turn.session, turn.id),
      ),
      process,
      [...leftBehind],
    ),
  ],
  results(all, [rows = []]) {
    const epochs = new Map((rows as readonly unknown[] as readonly Taken[]).map(({ name, epoch }) => [name, epoch]))
    return all.map(({ name }) => epochs.get(name))
  },
  readAgain: (all) => [
    sql(
      TAKEN,
      process,
      all.map(({ turn }) => turn.id),
    ),
  ],
})
