/** The one writer: what is asked for in one turn of the event loop becomes durable in one commit. */
import { AppError, type Clock, type Logger, type StoreHealth } from '@sluice/sdk'
import { Company } from './company.ts'
import type { Database } from './database.ts'
import { isDamaged, storageError, storageFault } from './storage-error.ts'

/** So many waiting units are committed at once, without waiting for the event loop's turn to end. */
const UNITS_MAX = 512
/** How long a commit waits for those who are missed. */
const WAIT_MS = 1

export interface GroupCommitOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Told after each commit how many units it held and how long it took, the disk included. Must not throw. */
  readonly onCommit?: ((units: number, tookMs: number) => void) | undefined
}

interface Unit {
  readonly run: () => unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Failure {
  readonly error: unknown
  /** False: not even the transaction could begin, so none of the units is at fault. */
  readonly begun: boolean
}

export class GroupCommit {
  readonly #db: Database
  readonly #options: GroupCommitOptions
  #waiting: Unit[] = []
  #commits = 0
  readonly #company = new Company()
  #scheduled: NodeJS.Immediate | undefined
  #patience: NodeJS.Timeout | undefined
  #closed = false
  #lastCommitMs: number | null = null
  /** Why the last write failed, where that lies with the disk or the file. */
  #fault: string | null = null

  constructor(db: Database, options: GroupCommitOptions) {
    this.#db = db
    this.#options = options
  }

  get pending(): number {
    return this.#waiting.length
  }

  get health(): StoreHealth {
    return { lastCommitMs: this.#lastCommitMs, fault: this.#fault ?? this.#db.damage }
  }

  /** Commits so far. */
  get commits(): number {
    return this.#commits
  }

  /**
   * Runs `unit` in the next transaction and resolves to what it returned once that is durable. Rejects when nothing of it
   * was kept: with `unavailable` when the disk or the file is at fault, else with what the unit threw. A unit may run
   * twice, because one that throws has the others of its transaction run again alone: it works on the database and
   * nothing else, and returns an expected refusal rather than throwing it.
   */
  write<T>(unit: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new AppError('unavailable', 'The store is closed.'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ run: unit, resolve: resolve as (result: unknown) => void, reject })
    if (this.#waiting.length >= UNITS_MAX) this.flush()
    else this.#schedule()
    return promise
  }

  /** Commits at the end of this turn of the event loop if nobody is missed, else a little later. */
  #schedule(): void {
    if (this.#scheduled) return
    if (this.#company.isComplete(this.#waiting.length)) this.#scheduled = setImmediate(() => this.flush())
    else this.#patience ??= setTimeout(() => this.flush(), WAIT_MS)
  }

  /** Commits what waits, now. */
  flush(): void {
    clearImmediate(this.#scheduled)
    clearTimeout(this.#patience)
    this.#scheduled = undefined
    this.#patience = undefined
    const units = this.#waiting
    this.#waiting = []
    if (units.length > 0) this.#settle(units)
  }

  /** Commits what waits and refuses what comes. */
  close(): void {
    this.flush()
    this.#closed = true
  }

  #settle(units: readonly Unit[]): void {
    let failure = this.#commit(units)
    if (!failure) return
    if (!failure.begun || units.length === 1) {
      for (const unit of units) this.#refuse(unit, failure)
      return
    }
    failure = undefined
    for (const unit of units) {
      // A transaction that cannot begin has waited for the lock already; nobody behind it waits again.
      if (!failure || failure.begun) failure = this.#commit([unit])
      if (failure) this.#refuse(unit, failure)
    }
  }

  #commit(units: readonly Unit[]): Failure | undefined {
    const { clock, log, onCommit } = this.#options
    const startedMs = clock.monotonicMs()
    let begun = false
    let results: unknown[]
    try {
      results = this.#db.transaction(() => {
        begun = true
        return units.map(({ run }) => run())
      })
    } catch (error) {
      return { error, begun }
    }
    this.#commits++
    for (const [index, { resolve }] of units.entries()) resolve(results[index])
    if (this.#fault !== null) log.info('the store keeps writes again')
    this.#fault = null
    this.#lastCommitMs = clock.monotonicMs()
    const tookMs = this.#lastCommitMs - startedMs
    this.#company.committed(units.length)
    onCommit?.(units.length, tookMs)
    return undefined
  }

  #refuse(unit: Unit, { error }: Failure): void {
    const fault = storageFault(error)
    if (this.#fault === null && fault !== undefined) this.#options.log.error('the store cannot keep writes', { error })
    this.#fault = fault ?? this.#fault
    // Other tables may still take writes, which mends nothing.
    if (isDamaged(error)) this.#db.damage ??= fault ?? null
    unit.reject(storageError(error, 'The store cannot keep this now'))
  }
}
