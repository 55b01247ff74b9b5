/**
 * The leases of a database. A lease is held while its row exists, and it is alive while its process beats, by the clock of the database.
 * A process takes over the leases of a dead one. A later process of the same node asks the earlier one to release them, because the lock of
 * the data directory says that it has ended or is about to end.
 */
import { EventEmitter } from 'node:events'
import { type Lease, type LeaseName, type LeaseStore, type Logger, leaseLost, type ShardRange, shardsOf } from '@sluice/sdk'
import pg from 'pg'
import { type ConnectionSettings, connect, DEFAULT_SCHEMA, disconnect, sql } from './connection.ts'
import type { Db } from './db.ts'
import { closedError, isConnectionError, storeError } from './postgres-error.ts'
import { MIGRATIONS } from './schema.ts'
import type { CommitQueue, Fence, Tx } from './writer.ts'

/** How long a process counts as alive after its last beat. */
export const TTL_MS = 6_000
const BEAT_MS = 1_500
/** A process acts under its leases only while nobody else can count it as dead, with room for the time that an effect takes to begin. */
const DOUBT_MS = TTL_MS - BEAT_MS
/** How long a later process of a node waits for an earlier one to answer. */
const HANDOVER_MS = 1_000
const POLL_MS = 50

// Processes take leases one after the other.
const LOCK = 'SELECT pg_advisory_xact_lock(7355, hashtext(current_schema()))'
const CONFLICTS = `
  SELECT leases.epoch, leases.process, processes.node,
    coalesce(processes.beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond', false) AS "isAlive"
  FROM leases LEFT JOIN processes ON processes.id = leases.process
  WHERE name = $1 OR (shard_from <= $3 AND shard_to >= $2)`
const END = 'DELETE FROM leases WHERE epoch = ANY ($1::bigint[])'
const TAKE = `
  INSERT INTO leases (name, epoch, process, shard_from, shard_to) VALUES ($1, nextval('epochs'), $2, $3, $4) RETURNING epoch`
const RELEASE = 'DELETE FROM leases WHERE epoch = $1'
const HELD = 'SELECT epoch FROM leases WHERE process = $1'
const BEAT = `
  INSERT INTO processes (id, node, schema_version) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), schema_version = excluded.schema_version`
const LEAVE = ['DELETE FROM leases WHERE process = $1', 'DELETE FROM processes WHERE id = $1']
/** The counts of connections of processes that ended long ago become one row. */
const RETIRE = `
  WITH gone AS (
    DELETE FROM connections WHERE process <> 'retired' AND NOT EXISTS (SELECT 1 FROM processes WHERE id = process) AND process <> $1
      RETURNING writes)
  INSERT INTO connections AS retired (process, slot, generation, writes) SELECT 'retired', 0, 0, coalesce(sum(writes), 0) FROM gone
  ON CONFLICT (process, slot) DO UPDATE SET writes = retired.writes + excluded.writes`
const DROP_DEAD = `
  DELETE FROM processes WHERE beat_at < clock_timestamp() - interval '1 day' AND NOT EXISTS (SELECT 1 FROM leases WHERE process = id)`

interface Conflict {
  readonly epoch: number
  readonly process: string
  readonly node: string | null
  readonly isAlive: boolean
}

export interface LeasesOptions {
  readonly settings: ConnectionSettings
  readonly log: Logger
  readonly process: string
  readonly node: string
  readonly db: Db
  readonly commits: CommitQueue
}

type Taken = { readonly epoch: number } | { readonly blockers: readonly Conflict[] }

export class Leases implements LeaseStore {
  readonly #options: LeasesOptions
  readonly #held = new Map<number, HeldLease>()
  readonly #freed = new EventEmitter().setMaxListeners(0)
  readonly #channel: string
  #beats: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #listening: Promise<pg.Client> | undefined
  /** When the last beat that was acknowledged was sent, by the monotonic clock. */
  #aliveAtMs = Number.NEGATIVE_INFINITY
  #wallAheadMs = 0
  #isClosed = false

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#channel = `sluice_${options.settings.schema ?? DEFAULT_SCHEMA}`
  }

  async acquire(name: LeaseName, signal?: AbortSignal): Promise<Lease> {
    signal?.throwIfAborted()
    const shards = shardsOf(name)
    if (this.#isClosed) throw closedError()
    await this.#start()
    const startedMs = performance.now()
    for (;;) {
      const taken = await this.#take(name, shards, performance.now() - startedMs > HANDOVER_MS)
      if ('epoch' in taken) return this.#grant({ name, epoch: taken.epoch, shards }, signal)
      await this.#wait(signal)
      signal?.throwIfAborted()
      if (this.#isClosed) throw closedError()
    }
  }

  /** Returns a lease that this store granted as what its writes are checked by. Throws for any other. */
  fenceOf(lease: Lease): Fence {
    if (lease instanceof HeldLease && lease.owner === this) return lease
    throw new Error(`the lease ${lease.name} was not granted by this store`)
  }

  /** True while no other process can count this one as dead. False after the machine was suspended, until the next beat. */
  get isAlive(): boolean {
    if (this.#isClosed || performance.now() - this.#aliveAtMs > DOUBT_MS) return false
    return Math.abs(Date.now() - performance.now() - this.#wallAheadMs) < DOUBT_MS || !this.#hasSlept()
  }

  /** Notices the leases that another holder has taken over. */
  async loseTaken(): Promise<void> {
    if (this.#held.size === 0) return
    const asked = [...this.#held.keys()]
    const held = new Set((await this.#options.db.all<{ epoch: number }>(HELD, this.#options.process)).map(({ epoch }) => epoch))
    for (const epoch of asked) if (!held.has(epoch)) this.#held.get(epoch)?.lose()
  }

  /** Ends a lease after the writes that were requested under it. */
  async end(lease: HeldLease): Promise<void> {
    await this.#options.db.writer.write(sql(RELEASE, lease.epoch))
    await this.#notify('free', [])
  }

  forget(epoch: number): void {
    this.#held.delete(epoch)
  }

  /** Releases every lease at once, so that other processes need not wait for the end of this one's beats. */
  async leave(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#beats)
    for (const lease of [...this.#held.values()]) lease.lose()
    await this.#beating
    if (this.#aliveAtMs > Number.NEGATIVE_INFINITY) {
      await this.#options.db.writer.write(...LEAVE.map((text) => sql(text, this.#options.process))).catch((error: unknown) => {
        this.#options.log.warn('leases not released: other processes take them over once they have expired', { error })
      })
      await this.#notify('free', [])
    }
    this.#freed.emit('free')
    await this.#listening?.then(disconnect, () => undefined)
  }

  /** Begins to beat and to listen, with the first lease. */
  async #start(): Promise<void> {
    if (this.#aliveAtMs === Number.NEGATIVE_INFINITY) {
      this.#beating ??= this.#beat()
      await this.#beating
      if (this.#aliveAtMs === Number.NEGATIVE_INFINITY) {
        this.#beating = undefined
        await this.#options.db.get('SELECT 1')
        throw closedError()
      }
      const { writer } = this.#options.db
      void writer.write(sql(DROP_DEAD), sql(RETIRE, this.#options.process)).catch(() => undefined)
    }
    await this.#listen()
  }

  async #beat(): Promise<void> {
    const { process, node, db, log } = this.#options
    const sentMs = performance.now()
    try {
      // On a connection of the reader: a beat never waits for a commit.
      await db.all(BEAT, process, node, MIGRATIONS.length)
      this.#aliveAtMs = sentMs
      this.#wallAheadMs = Date.now() - performance.now()
      void this.loseTaken().catch(() => undefined)
    } catch (error) {
      if (!this.#isClosed) log.warn('the database did not take the beat of this process', { error })
    }
    if (this.#isClosed) return
    this.#beats = setTimeout(() => {
      this.#beating = this.#beat()
    }, BEAT_MS).unref()
  }

  /** The wall clock moves on while the machine sleeps; the monotonic one may not. */
  #hasSlept(): boolean {
    return Date.now() - performance.now() - this.#wallAheadMs > DOUBT_MS
  }

  #take(name: LeaseName, shards: ShardRange | null, isForced: boolean): Promise<Taken> {
    const { db, process, node } = this.#options
    const [from, to] = shards ? [shards.from, shards.to] : [null, null]
    return db.writer.transaction(async (tx: Tx): Promise<Taken> => {
      await tx.all(LOCK)
      const conflicts = await tx.all<Conflict>(CONFLICTS, name, from, to)
      const blockers = conflicts.filter((one) => one.isAlive && one.process !== process && !(isForced && one.node === node))
      if (blockers.length > 0) {
        const own = blockers.filter((one) => one.node === node).map(({ epoch }) => epoch)
        if (own.length > 0) await tx.all('SELECT pg_notify($1, $2)', this.#channel, JSON.stringify({ what: 'want', epochs: own }))
        return { blockers }
      }
      const epochs = conflicts.map(({ epoch }) => epoch)
      if (epochs.length > 0) await tx.all(END, epochs)
      // Writes that were requested under an earlier lease of this process fail from here on.
      for (const epoch of epochs) this.#held.get(epoch)?.lose()
      const row = await tx.get<{ epoch: number }>(TAKE, name, process, from, to)
      return { epoch: row?.epoch ?? 0 }
    })
  }

  async #grant(about: Pick<Lease, 'name' | 'epoch' | 'shards'>, signal: AbortSignal | undefined): Promise<Lease> {
    const lease = new HeldLease(this, about)
    this.#held.set(about.epoch, lease)
    if (!signal?.aborted) return lease
    await lease.release()
    throw signal.reason
  }

  /** Waits until a lease was released, but not for long: the notice may be lost. */
  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, POLL_MS)
    this.#freed.once('free', resolve)
    signal?.addEventListener('abort', () => resolve(), { once: true })
    await promise
    clearTimeout(timer)
    this.#freed.off('free', resolve)
  }

  async #notify(what: 'free', epochs: readonly number[]): Promise<void> {
    await this.#options.db.all('SELECT pg_notify($1, $2)', this.#channel, JSON.stringify({ what, epochs })).catch(() => undefined)
  }

  #listen(): Promise<pg.Client> {
    this.#listening ??= this.#connect().catch((error: unknown) => {
      this.#listening = undefined
      throw storeError(error, 'The store cannot be read now')
    })
    return this.#listening
  }

  async #connect(): Promise<pg.Client> {
    const client = await connect(this.#options.settings)
    client.on('notification', ({ payload }) => this.#heard(payload ?? ''))
    client.on('end', () => {
      this.#listening = undefined
      // Without it, notices come late but leases stay right.
      if (!this.#isClosed) setTimeout(() => void this.#listen().catch(() => undefined), BEAT_MS).unref()
    })
    await client.query(`LISTEN ${pg.escapeIdentifier(this.#channel)}`)
    return client
  }

  #heard(payload: string): void {
    try {
      const { what, epochs } = JSON.parse(payload) as { what: string; epochs: readonly number[] }
      if (what === 'free') this.#freed.emit('free')
      if (what !== 'want') return
      for (const epoch of epochs)
        void this.#held
          .get(epoch)
          ?.release()
          .catch(() => undefined)
    } catch (error) {
      this.#options.log.warn('a notice of another process cannot be read', { error: isConnectionError(error) ? undefined : error })
    }
  }
}

export class HeldLease implements Lease, Fence {
  readonly name: LeaseName
  readonly epoch: number
  readonly shards: ShardRange | null
  readonly owner: Leases
  readonly #lost = new AbortController()

  constructor(owner: Leases, { name, epoch, shards }: Pick<Lease, 'name' | 'epoch' | 'shards'>) {
    this.owner = owner
    this.name = name
    this.epoch = epoch
    this.shards = shards
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get isLost(): boolean {
    return this.lost.aborted
  }

  mayAct(): boolean {
    return !this.isLost && this.owner.isAlive
  }

  lose(): void {
    this.owner.forget(this.epoch)
    this.#lost.abort(leaseLost(this.name))
  }

  async release(): Promise<void> {
    if (this.isLost) return
    const ended = this.owner.end(this)
    this.lose()
    await ended
  }
}
