/** The only writer: all writes requested in one tick of the event loop become durable in one commit. */
import { AppError, type Clock, type LeaseName, type Logger, leaseLost, type StoreHealth } from '@sluice/sdk'
import type { Database } from './database.ts'
import { isDamaged, storageError, storageFault } from './storage-error.ts'

/** This many waiting writes are committed at once, without waiting for the end of the tick. */
const UNITS_MAX = 512
/** The number of rows dropped in one transaction; each row has pages of its own. */
const SLICE_ROWS = 250

export interface GroupCommitOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Called after each commit with the number of its writes and its duration, including the sync. Must not throw. */
  readonly onCommit?: ((units: number, tookMs: number) => void) | undefined
}

/** A lease that a write depends on: the write fails once the lease is lost. */
export interface Fence {
  readonly name: LeaseName
  /** Reads the file inside the transaction of the write. */
  isHeld(): boolean
  /** Called when a commit finds that it is lost. */
  lose(): void
}

/** Writes for one caller, either any caller or the holder of a lease. */
export type Writer = Pick<GroupCommit, 'write' | 'dropInSlices'>

interface Unit {
  readonly run: () => unknown
  readonly fence: Fence | undefined
  readonly changesFences: boolean
  readonly onDurable: ((result: unknown) => void) | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

interface Failure {
  readonly error: unknown
  /** False when the transaction could not begin, so that no unit caused the failure. */
  readonly begun: boolean
}

/** One per database connection. */
export class GroupCommit {
  readonly #db: Database
  readonly #options: GroupCommitOptions
  #waiting: Unit[] = []
  #commits = 0
  #immediate: NodeJS.Immediate | undefined
  #isClosed = false
  #lastCommitMs: number | null = null
  /** The fault of the disk or the file that made the last write fail. */
  #fault: string | null = null

  constructor(db: Database, options: GroupCommitOptions) {
    this.#db = db
    this.#options = options
  }

  /** The number of waiting writes. */
  get pending(): number {
    return this.#waiting.length
  }

  get health(): StoreHealth {
    return { lastCommitMs: this.#lastCommitMs, fault: this.#fault ?? this.#db.damage }
  }

  /** The number of commits so far. */
  get commits(): number {
    return this.#commits
  }

  /**
   * Runs `unit` in the next transaction and resolves to its result once that is durable. After a rejection nothing of the unit is
   * stored; it rejects with `unavailable` for a fault of the disk or the file, else with the unit's own error. A unit may run
   * twice: when one unit of a transaction throws, the others run again, each in a transaction of its own. A unit must therefore
   * only touch the database, and must return an expected refusal instead of throwing it. `onDurable` is called with the result before the
   * promise resolves, which saves the caller a promise of its own; it must not throw.
   */
  write<T>(unit: () => T, onDurable?: (result: T) => void): Promise<T> {
    return this.#write(unit, undefined, false, onDurable)
  }

  /** As `write`, for a unit that changes which fences are held. */
  writeFences<T>(unit: () => T): Promise<T> {
    return this.#write(unit, undefined, true)
  }

  /** Returns the writer of a caller whose writes fail with `isLeaseLost`, and change nothing, once the fence is lost. */
  under(fence: Fence): Writer {
    const write = <T>(unit: () => T, onDurable?: (result: T) => void): Promise<T> => this.#write(unit, fence, false, onDurable)
    return { write, dropInSlices: (limit, drop) => dropInSlices(write, limit, drop) }
  }

  #write<T>(unit: () => T, fence: Fence | undefined, changesFences = false, onDurable?: (result: T) => void): Promise<T> {
    if (this.#isClosed) return Promise.reject(new AppError('unavailable', 'The store is closed.'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({
      run: unit,
      fence,
      changesFences,
      onDurable: onDurable as ((result: unknown) => void) | undefined,
      resolve: resolve as (result: unknown) => void,
      reject,
    })
    if (this.#waiting.length >= UNITS_MAX) this.flush()
    // At the end of this tick.
    else this.#immediate ??= setImmediate(() => this.flush())
    return promise
  }

  /**
   * Drops at most `limit` rows in small transactions, so that other writes get their turn in between. `drop` gets the number of
   * rows for one transaction and returns the number it dropped. Resolves to the total.
   */
  dropInSlices(limit: number, drop: (rows: number) => number): Promise<number> {
    return dropInSlices((unit) => this.write(unit), limit, drop)
  }

  /** Commits the waiting writes now. */
  flush(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    const units = this.#waiting
    this.#waiting = []
    if (units.length > 0) this.#commitAll(units)
  }

  /** Commits the waiting writes and refuses later ones. */
  close(): void {
    this.flush()
    this.#isClosed = true
  }

  #commitAll(units: readonly Unit[]): void {
    let failure = this.#commit(units)
    if (!failure) return
    if (!failure.begun || units.length === 1) {
      for (const unit of units) this.#refuse(unit, failure)
      return
    }
    failure = undefined
    for (const unit of units) {
      // A transaction that could not begin has already waited for the lock, so the remaining units do not wait again.
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
        return runInOrder(units)
      })
    } catch (error) {
      return { error, begun }
    }
    this.#commits++
    for (let index = 0; index < units.length; index++) settle(units[index] as Unit, results[index])
    if (this.#fault !== null) log.info('store accepts writes again')
    this.#fault = null
    this.#lastCommitMs = clock.monotonicMs()
    const tookMs = this.#lastCommitMs - startedMs
    onCommit?.(units.length, tookMs)
    return undefined
  }

  #refuse(unit: Unit, { error }: Failure): void {
    const fault = storageFault(error)
    if (this.#fault === null && fault !== undefined) this.#options.log.error('store cannot write', { error })
    this.#fault = fault ?? this.#fault
    // Writes to undamaged tables may still succeed, but the file stays damaged.
    if (isDamaged(error)) this.#db.damage ??= fault ?? null
    unit.reject(storageError(error, 'The store cannot write now'))
  }
}

/** The result of a unit that did not run, because its fence is lost. */
const NOT_RUN = Symbol('not run')

/** Part of a transaction. Each fence is checked once, and again after a unit that changes fences. */
function runInOrder(units: readonly Unit[]): unknown[] {
  const held = new Map<Fence, boolean>()
  const isHeld = (fence: Fence): boolean => {
    const known = held.get(fence) ?? fence.isHeld()
    held.set(fence, known)
    return known
  }
  return units.map(({ run, fence, changesFences }) => {
    if (changesFences) held.clear()
    return fence && !isHeld(fence) ? NOT_RUN : run()
  })
}

function settle({ fence, onDurable, resolve, reject }: Unit, result: unknown): void {
  if (fence && result === NOT_RUN) {
    reject(leaseLost(fence.name))
    fence.lose()
    return
  }
  onDurable?.(result)
  resolve(result)
}

async function dropInSlices(write: GroupCommit['write'], limit: number, drop: (rows: number) => number): Promise<number> {
  for (let dropped = 0; ; ) {
    const rows = Math.min(limit - dropped, SLICE_ROWS)
    const count = rows > 0 ? await write(() => drop(rows)) : 0
    dropped += count
    if (count < SLICE_ROWS) return dropped
  }
}
