/** The embedded store: one SQLite file behind the `Store` port. */
import { memoryCounters, systemClock } from '@sluice/kit'
import { AppError, type Clock, errorText, type Lease, type Logger, type OwnedStore, type Store, type WorkStore } from '@sluice/sdk'
import { createAdmissions } from './cold/admissions.ts'
import { createApprovals } from './cold/approvals.ts'
import { createKeyValue } from './cold/key-value.ts'
import { createMemory } from './cold/memory.ts'
import { createSessions } from './cold/sessions.ts'
import { createSops } from './cold/sops.ts'
import { accessProblem } from './connection/access-problem.ts'
import { ChangeWatch } from './connection/change-watch.ts'
import { Database } from './connection/database.ts'
import { GroupCommit, type Writer } from './connection/group-commit.ts'
import { createColdDatabase } from './connection/run-steps.ts'
import { migrate } from './schema/migrate.ts'
import { admissionWrites } from './tables/admissions.ts'
import { openDevices } from './tables/devices.ts'
import { DIALECT } from './tables/dialect.ts'
import { HistoryCache } from './tables/history-cache.ts'
import { createIdempotency } from './tables/idempotency.ts'
import { createInbox } from './tables/inbox.ts'
import { Leases } from './tables/leases.ts'
import { createOutbox } from './tables/outbox.ts'
import { RecentIds } from './tables/recent-ids.ts'
import { recoverAdmissions, recoverApprovals, recoverInbox, recoverOutbox, recoverSops, recoverTurns } from './tables/recovery.ts'
import { sessionReads } from './tables/sessions.ts'
import { usageOf } from './tables/space.ts'
import { createTurns } from './tables/turns.ts'

export interface StoreOptions {
  /** Created with its folder if it does not exist; readable only by this user. */
  readonly file: string
  /** Default: the clock of this machine. */
  readonly clock?: Clock
  /** Default: nothing is logged. */
  readonly log?: Logger
  /** Called after each commit with the number of its writes and its duration, including the sync. Must not throw. */
  readonly onCommit?: (units: number, tookMs: number) => void
  /** Takes the lock for upgrading a file of an earlier release; throws if a daemon uses the file. Absent: the caller holds it. */
  readonly lockForUpgrade?: (() => { release(): void }) | undefined
  /** Lists of a larger file are read in a thread of their own. Default: 64 MiB. */
  readonly largeBytes?: number | undefined
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

type CompleteOptions = StoreOptions & Required<Pick<StoreOptions, 'clock' | 'log'>>

/**
 * Opens the file and migrates it to this release's schema. Throws `unavailable` when it cannot be opened, is not a store, or was
 * written by a newer release. Several processes may open the same file, of which at most one should be a daemon.
 */
export function openStore(given: StoreOptions): Store {
  const options = { clock: systemClock, log: SILENT, ...given }
  const { file, clock, log, onCommit } = options
  const db = openDatabase(options)
  const writer = new GroupCommit(db, { clock, log, onCommit })
  const leases = new Leases(db, writer, () => clock.nowMs())
  const changes = new ChangeWatch(db, { clock, log, onForeignCommit: () => leases.loseTaken() })
  const createWork = workOf(db, options)
  const known = new WeakMap<Lease, OwnedStore>()
  const work = createWork(writer)
  return {
    ...work,
    devices: openDevices(db, writer, clock, DIALECT),
    memory: createMemory(createColdDatabase(db, writer, DIALECT)),
    counters: memoryCounters(clock),
    leases,
    under(lease) {
      const fenced = writer.under(leases.fenceOf(lease))
      const owned = known.get(lease) ?? ownedWork(db, fenced, createWork(fenced), lease)
      known.set(lease, owned)
      return owned
    },
    onChange: (listener) => changes.onChange(listener),
    prunable: async (retention) => (await import('./tables/prune.ts')).prunable(db, writer, retention),
    usage: async () => usageOf(db, file),
    pending: () => writer.pending,
    health: () => writer.health,
    // Each commit writes into the log first, so that any write shows whether there is room.
    probe: () => work.keyValue('gateway:health').set('probe', clock.monotonicMs()),
    async check() {
      if (!db.isOpen) throw new AppError('unavailable', 'The store is closed.')
      const { checkFile } = await import('./connection/check-file.ts')
      return checkFile(file)
    },
    async close() {
      if (!db.isOpen) return
      changes.close()
      writer.close()
      await db.closeReader()
      if (!db.isOpen) return
      checkpoint(db, log)
      db.close()
    },
  }
}

/** Returns the function that creates the groups of one caller. All callers share the caches. */
function workOf(db: Database, { file, clock }: CompleteOptions) {
  const idempotency = createIdempotency(db, clock)
  const histories = new HistoryCache()
  const recentIds = new RecentIds()
  return (writer: Writer): WorkStore => {
    const cold = createColdDatabase(db, writer, DIALECT)
    return {
      sessions: createSessions(cold, sessionReads({ db, writer, cache: histories, file })),
      turns: createTurns(db, writer, idempotency.keys, histories),
      idempotency: idempotency.port,
      inbox: createInbox(db, writer, clock, recentIds),
      outbox: createOutbox(db, writer, clock),
      approvals: createApprovals(cold),
      sops: createSops(cold, idempotency.keys),
      admissions: createAdmissions(cold, admissionWrites(db, writer)),
      async prune(retention) {
        const { prune } = await import('./tables/prune.ts')
        const { summaries, ...pruned } = await prune(db, writer, file, retention)
        if (pruned.messages > 0) recentIds.clear()
        if (pruned.historyTurns + pruned.conversations + summaries > 0) histories.clear()
        return pruned
      },
      keyValue: (owner) => createKeyValue(cold, owner),
    }
  }
}

/** Adds what only the holder of the lease may do. */
const ownedWork = (db: Database, writer: Writer, work: WorkStore, lease: Lease): OwnedStore => ({
  ...work,
  lease,
  turns: { ...work.turns, ...recoverTurns(db, lease.shards) },
  inbox: { ...work.inbox, ...recoverInbox(db, lease.shards) },
  outbox: { ...work.outbox, ...recoverOutbox(db, writer, lease.shards) },
  approvals: { ...work.approvals, ...recoverApprovals(db, lease.shards) },
  sops: { ...work.sops, ...recoverSops(db, lease.shards) },
  admissions: { ...work.admissions, ...recoverAdmissions(db, writer, lease.shards) },
})

function openDatabase({ file, log, clock, largeBytes, lockForUpgrade: lock }: CompleteOptions): Database {
  let db: Database | undefined
  try {
    db = new Database(file, largeBytes)
    db.makeDurable()
    migrate(db, { file, log, nowMs: clock.nowMs(), ...(lock && { lock }) })
    db.opened()
    return db
  } catch (error) {
    db?.close()
    if (error instanceof AppError) throw error
    throw new AppError('unavailable', `The store ${file} cannot be opened: ${accessProblem(file) ?? errorText(error)}`, { cause: error })
  }
}

/** Leaves one file instead of three. If it fails, the next open reads the rest from the write-ahead log. */
function checkpoint(db: Database, log: Logger): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    log.warn('store closed without a checkpoint, no data is lost', { error })
  }
}
