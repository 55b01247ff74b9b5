/** The life of this process among the processes of the database: it joins them, and beats until it ends. */
import { AppError, type ClusterMember, type Logger } from '@sluice/sdk'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { closedError } from '../connection/postgres-error.ts'
import { SIGNED_KEY } from '../schema/row-signatures.ts'
import { MIGRATIONS } from '../schema/schema.ts'

/** How long a process counts as alive after its last beat. */
export const TTL_MS = 6_000
const BEAT_MS = 1_500
/** A process acts under its leases only while no other process can count it as dead, with room for the time that an effect takes to begin. */
const DOUBT_MS = TTL_MS - BEAT_MS
/** How often a node looks whether another one of its name has gone. */
const TWIN_POLL_MS = 250

const BEAT = `
  INSERT INTO processes (id, node, schema_version, place, cluster, version, url, roles, key_id, clock_offset_ms)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
  ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), node = excluded.node, schema_version = excluded.schema_version,
    place = excluded.place, cluster = excluded.cluster, version = excluded.version, url = excluded.url, roles = excluded.roles, key_id = excluded.key_id,
    clock_offset_ms = excluded.clock_offset_ms
  RETURNING extract(epoch FROM beat_at)::float8 * 1000 AS "serverMs", (SELECT value FROM meta WHERE key = '${SIGNED_KEY}') AS signed`
/** Another place whose node has this name. */
const TWIN = `
  SELECT place FROM processes WHERE node = $1 AND place <> $2 AND NOT is_leaving
    AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond'`
const NAME_CLUSTER = `INSERT INTO meta (key, value) VALUES ('cluster', $1) ON CONFLICT (key) DO NOTHING`
const CLUSTER_NAME = `SELECT value FROM meta WHERE key = 'cluster'`
/** The counts of connections of processes that ended long ago become one row. */
const RETIRE = `
  WITH gone AS (
    DELETE FROM connections WHERE process <> 'retired' AND NOT EXISTS (SELECT 1 FROM processes WHERE id = process) AND process <> $1
      RETURNING writes)
  INSERT INTO connections AS retired (process, slot, generation, writes) SELECT 'retired', 0, 0, coalesce(sum(writes), 0) FROM gone
  ON CONFLICT (process, slot) DO UPDATE SET writes = retired.writes + excluded.writes`
const DROP_DEAD = `
  DELETE FROM processes WHERE beat_at < clock_timestamp() - interval '1 day' AND NOT EXISTS (SELECT 1 FROM leases WHERE process = id)`

/** How a process appears in the database. */
export interface ProcessOptions {
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
}

export interface MembershipOptions extends ProcessOptions {
  /** Called before a beat counts that came so late that other processes may have counted this one as dead. */
  readonly onDoubt: () => Promise<void>
  /** Called after each beat. */
  readonly onBeat: () => void
}

export class Membership {
  readonly #options: MembershipOptions
  #beats: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #joining: Promise<void> | undefined
  /** When the last beat that was acknowledged was sent, by the monotonic clock. */
  #aliveAtMs = Number.NEGATIVE_INFINITY
  #wallAheadMs = 0
  #isClosed = false
  /** When the first beat of an outage was sent; undefined while beats are taken. */
  #silentSinceMs: number | undefined
  #keyId: string | undefined

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#keyId = options.keyId
  }

  /** True while no other process can count this one as dead. False after the machine was suspended, until the next beat. */
  get isAlive(): boolean {
    if (this.#isClosed || performance.now() - this.#aliveAtMs > DOUBT_MS) return false
    return Math.abs(Date.now() - performance.now() - this.#wallAheadMs) < DOUBT_MS || !this.#hasSlept()
  }

  /** True once the database has taken a beat. */
  get hasBegun(): boolean {
    return this.#aliveAtMs !== Number.NEGATIVE_INFINITY
  }

  get beatAgeMs(): number {
    return performance.now() - this.#aliveAtMs
  }

  /** Joins the processes of the database, and beats from then on. Does nothing when it has begun. */
  async begin(): Promise<void> {
    if (this.hasBegun) return
    const { db, process } = this.#options
    this.#joining ??= this.#join()
    await this.#joining.finally(() => {
      this.#joining = undefined
    })
    this.#beating ??= this.#beat()
    await this.#beating
    if (!this.hasBegun) {
      this.#beating = undefined
      await db.get('SELECT 1')
      throw closedError()
    }
    void db.writer.write(sql(DROP_DEAD), sql(RETIRE, process)).catch(() => undefined)
  }

  /** Beats no more. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#beats)
  }

  /** Resolves once no beat is under way. */
  async idle(): Promise<void> {
    await this.#beating
  }

  async #beat(): Promise<void> {
    const { process, node, place, cluster, db, log, keyIdNow } = this.#options
    this.#keyId = keyIdNow?.() ?? this.#keyId
    const about = [
      place,
      cluster?.name ?? null,
      cluster?.version ?? '',
      cluster?.url ?? null,
      cluster?.roles ?? [],
      this.#keyId ?? null,
      db.serverClock.offsetMs,
    ]
    const sentMs = performance.now()
    try {
      const sentAtMs = Date.now()
      // On a connection of the reader: a beat never waits for a commit.
      const beat = await db.get<{ serverMs: number; signed: string | null }>(BEAT, process, node, MIGRATIONS.length, ...about)
      if (beat) db.serverClock.told(beat.serverMs, sentAtMs, Date.now())
      db.signatures.learn(beat?.signed)
      if (!this.isAlive) await this.#options.onDoubt()
      this.#aliveAtMs = sentMs
      if (this.#silentSinceMs !== undefined)
        log.info('the database answers again', { silent_secs: Math.round((performance.now() - this.#silentSinceMs) / 1000) })
      this.#silentSinceMs = undefined
      this.#wallAheadMs = Date.now() - performance.now()
      this.#options.onBeat()
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

  /** Refuses to start while another node has the same name, and in a cluster of another name. */
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
      await new Promise((resolve) => setTimeout(resolve, TWIN_POLL_MS))
    }
  }
}
