/** The embedded store: one SQLite file behind the `Store` port. */
import { AppError, type Clock, errorText, type Logger, type Store, type StoreProblem } from '@sluice/sdk'
import { accessProblem } from './access-problem.ts'
import { createApprovals } from './approvals.ts'
import { Database } from './database.ts'
import { createDevices } from './devices.ts'
import { GroupCommit } from './group-commit.ts'
import { HistoryCache } from './history-cache.ts'
import { createIdempotency } from './idempotency.ts'
import { createInbox } from './inbox.ts'
import { createRecentIds } from './keep-arrival.ts'
import { createKeyValue } from './key-value.ts'
import { createMemory } from './memory.ts'
import { migrate } from './migrate.ts'
import { createOutbox, repliesTo } from './outbox.ts'
import { prunable, prune } from './prune.ts'
import { createSessions } from './sessions.ts'
import { createSops } from './sops.ts'
import { usageOf } from './space.ts'
import { createTurns } from './turns.ts'

/** `doctor` shows so many problems of a broken file. */
const PROBLEMS_MAX = 100

export interface StoreOptions {
  /** Made, with its folder, where it does not exist; private to the user. */
  readonly file: string
  readonly clock: Clock
  readonly log: Logger
  /** Told after each commit how many writes it held and how long it took, the disk included. Must not throw. */
  readonly onCommit?: (units: number, tookMs: number) => void
  /** Held while a file of an earlier release is upgraded; throws if a daemon uses the file. Left out: the caller holds it. */
  readonly lockForUpgrade?: (() => { release(): void }) | undefined
}

/**
 * Opens the file and brings it to this release's schema. Throws `unavailable` when it cannot be opened, is no store, or was
 * written by a newer release. Several processes may have the same file open; one of them should be the daemon.
 */
export function openStore({ file, clock, log, onCommit, lockForUpgrade }: StoreOptions): Store {
  const db = openDatabase({ file, log, clock, lockForUpgrade })
  const writer = new GroupCommit(db, { clock, log, onCommit })
  const idempotency = createIdempotency(db, clock)
  const histories = new HistoryCache()
  const recentIds = createRecentIds()
  return {
    sessions: createSessions({ db, writer, cache: histories, file }),
    turns: createTurns(db, writer, idempotency.keys, histories),
    idempotency: idempotency.port,
    devices: createDevices(db, writer, clock),
    memory: createMemory(db, writer),
    inbox: createInbox(db, writer, clock, recentIds, (number) => repliesTo(db, number)),
    outbox: createOutbox(db, writer, clock),
    approvals: createApprovals(db, writer),
    sops: createSops(db, writer, idempotency.keys),
    async prune(retention) {
      const forgotten = await prune({ db, writer, file }, retention)
      if (forgotten.messages > 0) recentIds.clear()
      if (forgotten.said + forgotten.conversations > 0) histories.clear()
      return forgotten
    },
    prunable: async (retention) => prunable(db, retention),
    usage: async () => usageOf(db, file),
    foreignVersion: () => db.read(() => db.foreignVersion()),
    keyValue: (owner) => createKeyValue(db, writer, owner),
    pending: () => writer.pending,
    health: () => writer.health,
    check: async () => problemsOf(db),
    async close() {
      if (!db.isOpen) return
      writer.close()
      checkpoint(db, log)
      db.close()
    },
  }
}

function openDatabase({ file, log, clock, lockForUpgrade: lock }: Omit<StoreOptions, 'onCommit'>): Database {
  let db: Database | undefined
  try {
    db = new Database(file)
    db.makeDurable()
    migrate(db, { file, log, nowMs: clock.nowMs(), ...(lock && { lock }) })
    return db
  } catch (error) {
    db?.close()
    if (error instanceof AppError) throw error
    throw new AppError('unavailable', `The store ${file} cannot be opened: ${accessProblem(file) ?? errorText(error)}`, { cause: error })
  }
}

/** Reads everything; a file too broken for that is a problem like any other. */
function problemsOf(db: Database): readonly StoreProblem[] {
  if (!db.isOpen) throw new AppError('unavailable', 'The store is closed.')
  try {
    const faults = db.all<{ integrity_check: string }>(`PRAGMA integrity_check(${PROBLEMS_MAX})`).map((row) => row.integrity_check)
    const strays = db
      .all<{ table: string; rowid: number; parent: string }>('PRAGMA foreign_key_check')
      .slice(0, PROBLEMS_MAX)
      .map(({ table, rowid, parent }) => `row ${rowid} of ${table} points to no row of ${parent}`)
    return [...faults.filter((fault) => fault !== 'ok'), ...strays].map((detail) => ({ detail }))
  } catch (error) {
    return [{ detail: errorText(error) }]
  }
}

/** Leaves one file behind rather than three; what cannot be moved now is found in the log file at the next open. */
function checkpoint(db: Database, log: Logger): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    log.warn('the store was closed without a checkpoint; nothing is lost', { error })
  }
}
