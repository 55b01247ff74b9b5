/** The store on PostgreSQL behind the `Store` port. */
import { randomUUID } from 'node:crypto'
import { every, memoryCounters, systemClock } from '@sluice/kit'
import {
  AppError,
  type Clock,
  type ClusterMember,
  type ClusterTurns,
  type DatabaseRecord,
  type Lease,
  type Logger,
  type OwnedStore,
  type RowSigner,
  type Store,
  type WorkStore,
} from '@sluice/sdk'
import {
  createAdmissions,
  createApprovals,
  createKeyValue,
  createMemory,
  createSessions,
  createSops,
  RecentIds,
} from '@sluice/store/shared'
import { createCluster } from './cluster/cluster.ts'
import { Leases } from './cluster/leases.ts'
import { Notices } from './cluster/notices.ts'
import { SessionLeases } from './cluster/session-leases.ts'
import { type ConnectionSettings, DEFAULT_SCHEMA, databaseName, sql } from './connection/connection.ts'
import { createDatabase, type Database } from './connection/database.ts'
import { ForeignCommits } from './connection/foreign-commits.ts'
import { GroupCommit } from './connection/group-commit.ts'
import { closedError, storeError } from './connection/postgres-error.ts'
import { Reader } from './connection/reader.ts'
import { createColdDatabase } from './connection/run-steps.ts'
import { ServerClock } from './connection/server-clock.ts'
import { ServerHistory } from './connection/server-history.ts'
import { ShardReads } from './connection/shard-reads.ts'
import { WorkNotices } from './connection/work-notices.ts'
import { type Migrated, migrate } from './schema/migrate.ts'
import { RowSignatures } from './schema/row-signatures.ts'
import { admissionWrites, endDeadAdmissions, ownedAdmissions } from './tables/admissions.ts'
import { ownedApprovals } from './tables/approvals.ts'
import { createSharedState } from './tables/cluster-state.ts'
import { openDevices } from './tables/devices.ts'
import { DIALECT } from './tables/dialect.ts'
import { Histories } from './tables/history-cache.ts'
import { createIdempotency } from './tables/idempotency.ts'
import { createInbox, ownedInbox } from './tables/inbox.ts'
import { probeArrival } from './tables/keep-arrival.ts'
import { createOutbox, ownedOutbox } from './tables/outbox.ts'
import { sessionReads } from './tables/sessions.ts'
import { ownedSops } from './tables/sops.ts'
import { usageOf } from './tables/space.ts'
import { abandonedTurns, abortsOf, createTurns, ownedTurns } from './tables/turns.ts'

export interface PostgresOptions extends ConnectionSettings {
  /** The name of this machine among the machines that share the database. A later process of a node takes over from an earlier one. */
  readonly node: string
  /** How this process takes part in a cluster. The name of its node then replaces `node`, which says where it runs. */
  readonly cluster?: ClusterMember
  /** The ids of the keys for secrets, the one that encrypts first. */
  readonly keyIds?: readonly string[]
  /** Signs the rows that nodes trust, and creates the key of a database that has none. Default: rows are not signed. */
  readonly signer?: RowSigner
  /** Remembers how far the database had come. Default: a database that went back since the last start is not noticed. */
  readonly record?: DatabaseRecord
  /** The id of the key that encrypts now. Default: the key is never rotated. */
  readonly keyIdNow?: () => string | undefined
  /** Connections that read. Default: 2. */
  readonly readers?: number
  /** Connections for transactions of several steps, besides the one that most writes share. Default: 4. */
  readonly writers?: number
  /** Default: the clock of this machine. */
  readonly clock?: Clock
  /** Default: nothing is logged. */
  readonly log?: Logger
  /** Called after each commit with the number of its writes and its duration. Must not throw. */
  readonly onCommit?: ((units: number, tookMs: number) => void) | undefined
}

/** How often is noted how far the database has come. */
const NOTE_EVERY_MS = 10_000

const FORGETFUL: DatabaseRecord = { read: () => undefined, write: () => undefined }

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/**
 * Connects and brings the schema up to this release. Rejects with `unavailable` when that is not possible now or a newer release uses the
 * database, and with `config_invalid` for wrong settings and for another key of secrets.
 */
export async function openPostgresStore(given: PostgresOptions): Promise<Store> {
  const {
    clock = systemClock,
    log = SILENT,
    node: place,
    cluster: member,
    keyIds = [],
    signer,
    record = FORGETFUL,
    keyIdNow,
    readers = 2,
    writers = 4,
    onCommit,
    ...address
  } = given
  const history = new ServerHistory(record, databaseName(address), log)
  const settings = { ...address, history }
  let migrated: Migrated
  try {
    migrated = await migrate({ settings, log, keyIds, signer, nowMs: clock.nowMs() })
  } catch (error) {
    if (error instanceof AppError) throw error
    const failure = storeError(error, 'The database cannot be opened')
    throw failure === error ? new AppError('unavailable', `The database cannot be opened: ${String(error)}`, { cause: error }) : failure
  }
  const process = randomUUID()
  const reader = new Reader(settings, readers)
  const shardReads = new ShardReads(reader)
  await reader.all(sql('SELECT 1'))
  const commits = new GroupCommit({ settings, process, clock, log, reader, transactions: writers, onCommit })
  const arrivals: WorkNotices | undefined =
    member && new WorkNotices({ owns: (shard) => leases.owns(shard), send: (notice) => leases.notify(notice) })
  const signatures = new RowSignatures({ signer, database: databaseName(settings), log })
  signatures.learn(migrated.signed)
  const parts = { reader, shards: shardReads, clock, signatures, serverClock: new ServerClock(), arrivals }
  const db = createDatabase({ ...parts, writer: commits.under() })
  const notices = new Notices({ db, log, process, channel: `sluice_${settings.schema ?? DEFAULT_SCHEMA}` })
  const about = {
    settings,
    log,
    process,
    node: member?.node ?? place,
    place,
    cluster: member,
    keyId: migrated.keyId,
    keyIdNow,
    db,
    commits,
  }
  const leases = new Leases({ ...about, heard: (message) => notices.heard(message) })
  const sessions = new SessionLeases({ db, leases, notices, log, process })
  const foreign = new ForeignCommits({ reader, process, clock, log, onForeignCommit: () => leases.loseTaken() })
  leases.onWork((change) => foreign.notify(change))
  const createWork = workOf(db, process, foreign)
  const over = new AbortController()
  // A server that cannot be asked now is noted later. The time of the database does not matter for the pace.
  void every(systemClock, NOTE_EVERY_MS, over.signal, () => history.look(db.all).catch(() => undefined))
  const shared = member && createSharedState({ settings, process, db, leases, notices, clock, log })
  const known = new WeakMap<Lease, OwnedStore>()
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    over.abort()
    foreign.close()
    sessions.close()
    arrivals?.close()
    await shared?.close()
    await leases.leave()
    await history.look(db.all).catch(() => undefined)
    await commits.close()
    await reader.close()
  }
  return {
    ...createWork(db),
    devices: openDevices(db),
    memory: createMemory(createColdDatabase(db, DIALECT)),
    counters: shared?.counters ?? memoryCounters(clock),
    leases,
    ...(shared && {
      cluster: { ...createCluster({ member, process, db, leases }), turns: clusterTurns(db, process, sessions), notices, ...shared.state },
    }),
    under(lease) {
      const fenced = createDatabase({ ...parts, writer: commits.under(leases.fenceOf(lease)) })
      const owned = known.get(lease) ?? ownedWork(fenced, process, createWork(fenced, lease), lease)
      known.set(lease, owned)
      return owned
    },
    onChange: (listener) => foreign.onChange(listener),
    prunable: async (retention) => (await import('./tables/prune.ts')).prunable(db, retention),
    usage: () => usageOf(db),
    pending: () => commits.pending,
    health: () => commits.health,
    probe: () => probeArrival(db),
    ...(signer && {
      async unverifiedRows() {
        const { surveyOf, unverifiedRows } = await import('./schema/unverified-rows.ts')
        return surveyOf(db.all, signatures, await unverifiedRows(db.all, signatures))
      },
    }),
    async checkServer() {
      if (closing) throw closedError()
      return (await import('./connection/check-server.ts')).checkServer(db, { oldPrimaries: history.oldPrimaries })
    },
    async check() {
      if (closing) throw closedError()
      const { checkDatabase } = await import('./connection/check-database.ts')
      return checkDatabase(db)
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}

const clusterTurns = (db: Database, process: string, sessions: SessionLeases): ClusterTurns => ({
  leftBehind: sessions.leftBehind,
  begin: (turn, options) => sessions.begin(turn, options),
  async abandoned(limit) {
    await endDeadAdmissions(db)
    return abandonedTurns(db, process, limit)
  },
  requestAbort: (id, owner) => sessions.requestAbort(id, owner),
  isRunning: (id) => sessions.isRunning(id),
  abortsRequested: async () => [...(await abortsOf(db, process)), ...(await sessions.abortsRequested())],
})

/** Returns the function that creates the groups of one caller. All callers share the caches. */
function workOf(shared: Database, process: string, foreign: ForeignCommits) {
  const idempotency = createIdempotency(shared, foreign)
  const histories = new Histories()
  const recentIds = new RecentIds()
  return (db: Database, lease?: Lease): WorkStore => {
    const cold = createColdDatabase(db, DIALECT)
    return {
      sessions: createSessions(cold, sessionReads(db, histories)),
      turns: createTurns(db, { keys: idempotency.keys, histories, process, isDirect: lease?.name.startsWith('session/') ?? false }),
      idempotency: idempotency.port,
      inbox: createInbox(db, recentIds),
      outbox: createOutbox(db),
      approvals: createApprovals(cold),
      sops: createSops(cold, idempotency.keys),
      admissions: createAdmissions(cold, admissionWrites(db, process)),
      async prune(retention) {
        const { prune } = await import('./tables/prune.ts')
        const pruned = await prune(db, retention)
        if (pruned.messages > 0) recentIds.clear()
        if (pruned.historyTurns + pruned.conversations > 0) histories.clear()
        return pruned
      },
      keyValue: (owner) => createKeyValue(cold, owner),
    }
  }
}

/** Adds what only the holder of the lease may do. */
const ownedWork = (db: Database, process: string, work: WorkStore, lease: Lease): OwnedStore => ({
  ...work,
  lease,
  turns: { ...work.turns, ...ownedTurns(db, process, lease.shards) },
  inbox: { ...work.inbox, ...ownedInbox(db, lease.shards) },
  outbox: { ...work.outbox, ...ownedOutbox(db, lease.shards) },
  approvals: { ...work.approvals, ...ownedApprovals(db, lease.shards) },
  sops: { ...work.sops, ...ownedSops(db, lease.shards) },
  admissions: { ...work.admissions, ...ownedAdmissions(db, process, lease.shards) },
})
