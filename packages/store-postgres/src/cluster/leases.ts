/**
 * The leases of a database. A lease is held while its row exists, and it is alive while its process beats, by the clock of the database.
 * A process takes over the leases of a dead one. A later process of the same node asks the earlier one to release them, because the lock of
 * the data directory says that it has ended or is about to end.
 */

import { EventEmitter } from 'node:events'
import { endsWithin, systemClock } from '@sluice/kit'
import {
  AppError,
  type ClusterMember,
  type Lease,
  type LeaseName,
  type LeaseStore,
  type Logger,
  leaseLost,
  SHARDS,
  type ShardRange,
  type StoreChange,
  shardsLease,
  shardsOf,
} from '@sluice/sdk'
import pg from 'pg'
import { answered, type ConnectionSettings, connect, DEFAULT_SCHEMA, disconnect, sql } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Fence, GroupCommit, Kind, Tx } from '../connection/group-commit.ts'
import { closedError, isConnectionError, storeError } from '../connection/postgres-error.ts'
import { changeOf, type WorkNotice } from '../connection/work-notices.ts'
import { SIGNED_KEY } from '../schema/row-signatures.ts'
import { MIGRATIONS } from '../schema/schema.ts'

/** How long a process counts as alive after its last beat. */
export const TTL_MS = 6_000
const BEAT_MS = 1_500
/** A process acts under its leases only while nobody else can count it as dead, with room for the time that an effect takes to begin. */
const DOUBT_MS = TTL_MS - BEAT_MS
/** How often a node looks for shards that it may take: a node that dies gives no notice. */
const CLAIM_MS = 500
/** How long a later process of a node waits for an earlier one to answer. */
const HANDOVER_MS = 1_000
/** How often leases that others hold are looked at, for a notice that was lost. */
const POLL_MS = 250
/** Releases at the same time share one notice. */
const NOTICE_MS = 5
const HANDOVER_POLL_MS = 50

/** Processes take leases one after the other, and decide under this lock which holders are dead. */
export const LOCK = 'SELECT pg_advisory_xact_lock(7355, hashtext(current_schema()))'
const CONFLICTS = `
  SELECT leases.epoch, leases.process, processes.node,
    coalesce(processes.beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond', false) AS "isAlive"
  FROM leases LEFT JOIN processes ON processes.id = leases.process
  WHERE name = $1 OR (shard_from <= $3 AND shard_to >= $2)`
/** In one order, as the commits that these locks wait for. */
const END = 'DELETE FROM leases WHERE epoch IN (SELECT epoch FROM leases WHERE epoch = ANY ($1::bigint[]) ORDER BY epoch FOR UPDATE)'
const TAKE = `
  INSERT INTO leases (name, epoch, process, shard_from, shard_to) VALUES ($1, nextval('epochs'), $2, $3, $4) RETURNING epoch`
/** The wanted leases that no other process is in the way of. */
const AVAILABLE = `
  SELECT wanted.name FROM unnest($2::text[], $3::int[], $4::int[]) AS wanted (name, shard_from, shard_to)
  WHERE NOT EXISTS (
    SELECT 1 FROM leases JOIN processes ON processes.id = leases.process
    WHERE (leases.name = wanted.name OR (leases.shard_from <= wanted.shard_to AND leases.shard_to >= wanted.shard_from))
      AND processes.id <> $1 AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond')`
const SHARDS_TAKEN = `
  SELECT leases.epoch, leases.process, shard_from AS "from", shard_to AS "to", processes.node,
    coalesce(processes.beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond', false) AS "isAlive"
  FROM leases LEFT JOIN processes ON processes.id = leases.process WHERE shard_from IS NOT NULL`
const TAKE_SHARDS = `
  INSERT INTO leases (name, epoch, process, shard_from, shard_to)
  SELECT 'shards/' || shard || '-' || shard, nextval('epochs'), $1, shard, shard FROM unnest($2::int[]) AS shard
  RETURNING epoch, shard_from AS shard`
const HELD = `SELECT epoch, name LIKE 'session/%' AS "isSession" FROM leases WHERE process = $1`
const BEAT = `
  INSERT INTO processes (id, node, schema_version, place, cluster, version, url, roles, key_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), node = excluded.node, schema_version = excluded.schema_version,
    place = excluded.place, cluster = excluded.cluster, version = excluded.version, url = excluded.url, roles = excluded.roles, key_id = excluded.key_id
  RETURNING extract(epoch FROM beat_at)::float8 * 1000 AS "serverMs", (SELECT value FROM meta WHERE key = '${SIGNED_KEY}') AS signed`
/** Another place whose node has this name. */
const TWIN = `
  SELECT place FROM processes WHERE node = $1 AND place <> $2 AND NOT is_leaving
    AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond'`
const NAME_CLUSTER = `INSERT INTO meta (key, value) VALUES ('cluster', $1) ON CONFLICT (key) DO NOTHING`
const CLUSTER_NAME = `SELECT value FROM meta WHERE key = 'cluster'`
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
  /** The name of the node. */
  readonly node: string
  /** The machine and its data directory. */
  readonly place: string
  readonly cluster?: ClusterMember | undefined
  readonly keyId?: string | undefined
  readonly keyIdNow?: (() => string | undefined) | undefined
  readonly db: Database
  readonly commits: GroupCommit
  /** Gets each notice. Must not throw. */
  readonly heard: (message: { readonly what?: unknown }) => void
}

/** `want`: a later process of a node asks an earlier one to release these leases. `free`: leases were released, or shares have changed. */
export type Notice = { readonly what: 'want' | 'free'; readonly epochs: readonly number[] } | WorkNotice

export const FREED: Notice = { what: 'free', epochs: [] }

type Taken = { readonly epoch: number } | { readonly blockers: readonly Conflict[] }

/** One lease that somebody waits for. */
interface Wanted {
  readonly name: LeaseName
  readonly shards: ShardRange | null
  readonly wake: () => void
}

/** Releases that are requested at the same time are one statement. */
const RELEASE: Kind<number, undefined> = {
  keys: () => [],
  statements: (epochs) => [sql(END, epochs)],
  results: (epochs) => epochs.map(() => undefined),
  readAgain: () => [],
}

export class Leases implements LeaseStore {
  readonly #options: LeasesOptions
  readonly #held = new Map<number, HeldLease>()
  readonly #freed = new EventEmitter().setMaxListeners(0)
  readonly #channel: string
  #beats: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #listening: Promise<pg.Client> | undefined
  #joining: Promise<void> | undefined
  /** When the last beat that was acknowledged was sent, by the monotonic clock. */
  #aliveAtMs = Number.NEGATIVE_INFINITY
  #wallAheadMs = 0
  #isClosed = false
  /** When the first beat of an outage was sent; undefined while beats are taken. */
  #silentSinceMs: number | undefined
  #keyId: string | undefined
  readonly #wanted = new Set<Wanted>()
  /** Leases whose rows are being deleted. */
  readonly #ending = new Set<number>()
  /** The number of times that leases were taken, and how often that is under way. */
  #takes = 0
  #takesUnderWay = 0
  /** The shards that this process holds as leases of one shard each. */
  readonly #shards = new Set<number>()
  #onWork: (change: StoreChange) => void = () => {}
  #polling: NodeJS.Timeout | undefined
  #noticing: NodeJS.Timeout | undefined

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#keyId = options.keyId
    this.#channel = `sluice_${options.settings.schema ?? DEFAULT_SCHEMA}`
  }

  async acquire(name: LeaseName, signal?: AbortSignal): Promise<Lease> {
    signal?.throwIfAborted()
    const shards = shardsOf(name)
    if (this.#isClosed) throw closedError()
    await this.start()
    const startedMs = performance.now()
    for (;;) {
      const isForced = performance.now() - startedMs > HANDOVER_MS
      const taken = await this.#taking(async () => {
        const found = await this.#take(name, shards, isForced)
        return 'epoch' in found ? await this.#grant({ name, epoch: found.epoch, shards }, signal) : found
      })
      if (!('blockers' in taken)) return taken
      await this.#untilAvailable(name, shards, taken.blockers, signal)
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

  /**
   * Notices the leases that another holder has taken over. Ends rows that are left of a release, or of a lease that was taken, whose
   * result did not arrive: while this process lives, nobody else could take them.
   */
  async loseTaken(): Promise<void> {
    const { db, process, cluster } = this.#options
    if (this.#held.size === 0 && !cluster) return
    const asked = [...this.#held.keys()]
    const takes = this.#takes
    const rows = await db.all<{ epoch: number; isSession: boolean }>(HELD, process)
    this.#loseMissing(asked, rows)
    if (this.#isClosed || this.#takesUnderWay > 0 || takes !== this.#takes) return
    const left = rows.filter(({ epoch, isSession }) => !isSession && !this.#held.has(epoch) && !this.#ending.has(epoch))
    for (const { epoch } of left) await this.#endRow(epoch)
  }

  /**
   * Loses the leases that others have taken because this process seemed dead, also those that they are about to take: whoever takes a
   * lease finds the beats of before under the same lock.
   */
  async #loseTakenMeanwhile(): Promise<void> {
    const asked = [...this.#held.keys()]
    if (asked.length === 0) return
    const rows = await this.#options.db.writer.transaction(async (tx) => {
      await tx.all(LOCK)
      return tx.all<{ epoch: number }>(HELD, this.#options.process)
    })
    this.#loseMissing(asked, rows)
  }

  #loseMissing(asked: readonly number[], rows: readonly { readonly epoch: number }[]): void {
    const held = new Set(rows.map(({ epoch }) => epoch))
    for (const epoch of asked) if (!held.has(epoch)) this.#held.get(epoch)?.lose()
  }

  /** Holds a lease whose row another statement has written. `end` deletes the row. */
  hold(about: Pick<Lease, 'name' | 'epoch' | 'shards'>, end?: () => Promise<void>): HeldLease {
    const lease = new HeldLease(this, about, end)
    this.#held.set(about.epoch, lease)
    return lease
  }

  holds(epoch: number): boolean {
    return this.#held.has(epoch)
  }

  /** Ends a lease after the writes that were requested under it. */
  async end(lease: HeldLease): Promise<void> {
    await (lease.endOwn ? lease.endOwn() : this.#endRow(lease.epoch))
  }

  async #endRow(epoch: number): Promise<void> {
    this.#ending.add(epoch)
    try {
      await this.#options.db.writer.add(RELEASE, epoch)
    } finally {
      this.#ending.delete(epoch)
    }
    this.#noticing ??= setTimeout(() => {
      this.#noticing = undefined
      void this.notify(FREED)
    }, NOTICE_MS).unref()
  }

  /** Takes leases by `take`, which puts them among the held ones before it resolves. */
  async #taking<T>(take: () => Promise<T>): Promise<T> {
    this.#takes++
    this.#takesUnderWay++
    try {
      return await take()
    } finally {
      this.#takesUnderWay--
    }
  }

  get beatAgeMs(): number {
    return performance.now() - this.#aliveAtMs
  }

  get shardsHeld(): number {
    let count = 0
    for (const { shards } of this.#held.values()) if (shards) count += shards.to - shards.from + 1
    return count
  }

  owns(shard: number): boolean {
    return this.#shards.has(shard)
  }

  /** Calls `listener` with the work that other processes store for this one. */
  onWork(listener: (change: StoreChange) => void): void {
    this.#onWork = listener
  }

  forget(epoch: number): void {
    const shards = this.#held.get(epoch)?.shards
    if (shards) this.#shards.delete(shards.from)
    this.#held.delete(epoch)
  }

  /** Releases every lease at once, so that other processes need not wait for the end of this one's beats. */
  async leave(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#beats)
    for (const lease of [...this.#held.values()]) lease.lose()
    // After the life of a lease, other processes take it over anyway, so the stop waits no longer for a database that does not answer.
    await endsWithin(this.#giveUp(), TTL_MS, systemClock)
    clearTimeout(this.#polling)
    this.#freed.emit('free')
    for (const { wake } of this.#wanted) wake()
    await this.#listening?.then(disconnect, () => undefined)
  }

  /** Never rejects. */
  async #giveUp(): Promise<void> {
    await this.#beating
    if (this.#aliveAtMs === Number.NEGATIVE_INFINITY) return
    try {
      await this.#options.db.writer.write(...LEAVE.map((text) => sql(text, this.#options.process)))
      clearTimeout(this.#noticing)
      await this.notify(FREED)
    } catch (error) {
      this.#options.log.warn('leases not released: other processes take them over once they have expired', { error })
    }
  }

  /** Begins to beat and to listen, with the first lease. */
  async start(): Promise<void> {
    if (this.#isClosed) throw closedError()
    if (this.#aliveAtMs === Number.NEGATIVE_INFINITY) {
      this.#joining ??= this.#join()
      await this.#joining.finally(() => {
        this.#joining = undefined
      })
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
    const { process, node, place, cluster, db, log, keyIdNow } = this.#options
    this.#keyId = keyIdNow?.() ?? this.#keyId
    const about = [place, cluster?.name ?? null, cluster?.version ?? '', cluster?.url ?? null, cluster?.roles ?? [], this.#keyId ?? null]
    const sentMs = performance.now()
    try {
      const sentAtMs = Date.now()
      // On a connection of the reader: a beat never waits for a commit.
      const beat = await db.get<{ serverMs: number; signed: string | null }>(BEAT, process, node, MIGRATIONS.length, ...about)
      if (beat) db.serverClock.told(beat.serverMs, sentAtMs, Date.now())
      db.signatures.learn(beat?.signed)
      if (!this.isAlive) await this.#loseTakenMeanwhile()
      this.#aliveAtMs = sentMs
      if (this.#silentSinceMs !== undefined)
        log.info('the database answers again', { silent_secs: Math.round((performance.now() - this.#silentSinceMs) / 1000) })
      this.#silentSinceMs = undefined
      this.#wallAheadMs = Date.now() - performance.now()
      void this.loseTaken().catch(() => undefined)
      void this.#listening?.then((client) => answered(client, client.query('SELECT 1'))).catch(() => undefined)
    } catch (error) {
      this.#silentSinceMs ??= sentMs
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
    const lease = this.hold(about)
    if (!signal?.aborted) return lease
    await lease.release()
    throw signal.reason
  }

  /**
   * Takes at most `count` shards that are free, that belong to a dead process, or that an earlier process of this node has left. Resolves
   * to their leases, one for each shard.
   */
  takeShards(count: number): Promise<readonly Lease[]> {
    return this.#taking(() => this.#takeShards(count))
  }

  async #takeShards(count: number): Promise<readonly Lease[]> {
    const { db, process, node } = this.#options
    const rows = await db.writer.transaction(async (tx): Promise<readonly { epoch: number; shard: number }[]> => {
      await tx.all(LOCK)
      const taken = await tx.all<Conflict & ShardRange>(SHARDS_TAKEN)
      // A row of this process that it knows nothing of was taken in a transaction whose answer was lost.
      const isHeld = (one: Conflict): boolean => (one.process === process ? this.#held.has(one.epoch) : one.isAlive && one.node !== node)
      const blocked = new Set(taken.filter(isHeld).flatMap(({ from, to }) => range(from, to)))
      const shards = range(0, SHARDS - 1)
        .filter((shard) => !blocked.has(shard))
        .slice(0, count)
      const ended = taken.filter((one) => !isHeld(one) && shards.some((shard) => shard >= one.from && shard <= one.to))
      const epochs = ended.map(({ epoch }) => epoch)
      if (epochs.length > 0) await tx.all(END, epochs)
      return shards.length > 0 ? tx.all(TAKE_SHARDS, process, shards) : []
    })
    return rows.map(({ epoch, shard }) => {
      const shards = { from: shard, to: shard }
      const lease = new HeldLease(this, { name: shardsLease(shards), epoch, shards })
      this.#held.set(epoch, lease)
      this.#shards.add(shard)
      return lease
    })
  }

  /** Resolves when a lease was released or a process came or left, and soon in any case. */
  async changed(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => resolve()
    const timer = setTimeout(end, CLAIM_MS)
    this.#freed.once('free', end)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted || this.#isClosed) end()
    await promise
    clearTimeout(timer)
    this.#freed.off('free', end)
    signal.removeEventListener('abort', end)
  }

  /** Refuses to start beside another node of the same name, and in a cluster of another name. */
  async #join(): Promise<void> {
    const { db, node, place, cluster } = this.#options
    if (!cluster) return
    await db.all(NAME_CLUSTER, cluster.name)
    const known = await db.get<{ value: string }>(CLUSTER_NAME)
    if (known && known.value !== cluster.name)
      throw new AppError('config_invalid', `The database belongs to the cluster "${known.value}", but cluster.name is "${cluster.name}".`)
    // A node that was moved to another machine waits for the end of its predecessor's leases.
    const endMs = performance.now() + TTL_MS + BEAT_MS
    for (;;) {
      const twin = await db.get<{ place: string }>(TWIN, node, place)
      if (!twin) return
      if (performance.now() > endMs) {
        throw new AppError(
          'config_invalid',
          `Another node of the cluster is named "${node}": ${twin.place}. Give each node a name of its own: cluster.node, or SVC_CLUSTER_NODE.`,
        )
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }

  /** Waits until the lease may be free. All who wait share one query, after each notice and four times a second. */
  async #untilAvailable(
    name: LeaseName,
    shards: ShardRange | null,
    blockers: readonly Conflict[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    // Both may have happened while the lease was asked for.
    if (signal?.aborted || this.#isClosed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const abort = (): void => resolve()
    const wanted: Wanted = { name, shards, wake: resolve }
    // An earlier process of this node answers soon, or has ended.
    const own = blockers.some(({ node }) => node === this.#options.node) ? setTimeout(resolve, HANDOVER_POLL_MS) : undefined
    this.#wanted.add(wanted)
    this.#pollIn(POLL_MS)
    signal?.addEventListener('abort', abort, { once: true })
    await promise
    signal?.removeEventListener('abort', abort)
    clearTimeout(own)
    this.#wanted.delete(wanted)
  }

  #pollIn(delayMs: number): void {
    clearTimeout(this.#polling)
    if (this.#isClosed || this.#wanted.size === 0) return
    this.#polling = setTimeout(() => void this.#poll(), delayMs).unref()
  }

  async #poll(): Promise<void> {
    const wanted = [...this.#wanted]
    const columns = columnsOf(
      wanted,
      ({ name }) => name,
      ({ shards }) => shards?.from ?? null,
      ({ shards }) => shards?.to ?? null,
    )
    try {
      const rows = await this.#options.db.all<{ name: LeaseName }>(AVAILABLE, this.#options.process, ...columns)
      const names = new Set(rows.map(({ name }) => name))
      for (const { name, wake } of wanted) if (names.has(name)) wake()
    } catch {
      // The next look repeats this one.
    }
    this.#pollIn(POLL_MS)
  }

  /** Sends a notice to all processes, such as that leases were released. Never rejects. */
  async notify(notice: Notice): Promise<void> {
    await this.#options.db.all('SELECT pg_notify($1, $2)', this.#channel, JSON.stringify(notice)).catch(() => undefined)
  }

  /** Begins to receive notices. */
  async listen(): Promise<void> {
    await this.#listen()
  }

  #listenAgain(): void {
    if (this.#isClosed) return
    setTimeout(() => void this.#listen().catch(() => this.#listenAgain()), BEAT_MS).unref()
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
      this.#listenAgain()
    })
    await client.query(`LISTEN ${pg.escapeIdentifier(this.#channel)}`)
    return client
  }

  #heard(payload: string): void {
    try {
      const notice = JSON.parse(payload) as Notice
      if (notice.what === 'work') {
        const change = changeOf(notice, (shard) => this.owns(shard))
        if (change) this.#onWork(change)
        return
      }
      const { what, epochs } = notice
      this.#options.heard(notice)
      if (what === 'free') {
        this.#freed.emit('free')
        this.#pollIn(0)
      }
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

const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at)

export class HeldLease implements Lease, Fence {
  readonly name: LeaseName
  readonly epoch: number
  readonly shards: ShardRange | null
  readonly owner: Leases
  /** Deletes the row, where `Leases` does not. */
  readonly endOwn: (() => Promise<void>) | undefined
  readonly #lost = new AbortController()

  constructor(owner: Leases, { name, epoch, shards }: Pick<Lease, 'name' | 'epoch' | 'shards'>, endOwn?: () => Promise<void>) {
    this.owner = owner
    this.endOwn = endOwn
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
