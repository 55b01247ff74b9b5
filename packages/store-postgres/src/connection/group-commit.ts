/**
 * The writes of one process. Writes that are requested while a commit is under way share the next one: all its statements are sent
 * at once, so that a process that stops in between holds no locks. Writes of one kind become one statement for all of them.
 */
import { AppError, type Clock, isLeaseLost, type LeaseName, type Logger, leaseLost, type StoreHealth } from '@sluice/sdk'
import { type ConnectionSettings, type Row, type Statement, sql } from './connection.ts'
import { MarkedConnection, NOT_BEGUN, type Transaction } from './marked-connection.ts'
import { awayError, closedError, faultOf, isRepeatable, sqlState, storeError } from './postgres-error.ts'
import type { Reader } from './reader.ts'

/** The largest number of writes of one commit. */
const UNITS_MAX = 512
/** Attempts at a transaction that lost against another one. */
const ATTEMPTS_MAX = 4
/** A write whose result did not arrive is looked up again after this time. */
const READ_AGAIN_DELAY_MS = 500
/** Rows dropped in one transaction. */
const SLICE_ROWS = 1000
/** Also tells tests which rejected writes may be stored. */
export const UNKNOWN_RESULT = 'The change was stored, but the connection broke before its result arrived.'
const HELD = 'SELECT epoch FROM leases WHERE epoch = ANY ($1::bigint[])'

/** The lease that a write depends on. */
export interface Fence {
  readonly name: LeaseName
  readonly epoch: number
  /** True once this process knows that the lease is lost. */
  readonly isLost: boolean
  lose(): void
}

/** Writes of one kind, each of which is an item of one set-based statement. */
export interface Kind<I, R> {
  /**
   * True: these writes take locks that all processes share. They are committed on a connection for transactions, so that other writes
   * never wait for those locks. A commit of them has writes of one kind.
   */
  readonly isApart?: true
  /**
   * True: the items are arriving messages. A fault of such a write ends with the next one that succeeds: on a full disk other writes may
   * still fit into pages that exist.
   */
  readonly isArrival?: true
  /** The keys of the rows that the write touches. Two writes with the same key never share a statement. */
  keys(item: I): readonly string[]
  statements(items: readonly I[]): readonly Statement[]
  /** The results of the items in order, from the rows of the statements. */
  results(items: readonly I[], rows: readonly (readonly Row[])[]): readonly R[]
  /**
   * Statements that read what `statements` returned, for a transaction that was committed although the connection broke before all
   * answers had arrived. Absent: such a write is rejected.
   */
  readAgain?(items: readonly I[]): readonly Statement[]
}

export interface Tx {
  all<R>(text: string, ...values: readonly unknown[]): Promise<R[]>
  get<R>(text: string, ...values: readonly unknown[]): Promise<R | undefined>
}

export interface Writer {
  /** Runs statements, of which the last one has the result. */
  write<R = Row>(...statements: readonly Statement[]): Promise<R[]>
  /** Adds an item to the next statement of its kind. */
  add<I, R>(kind: Kind<I, R>, item: I): Promise<R>
  /** Runs a transaction of several round trips. `use` may run again when it loses against another transaction. See `Kind.isArrival`. */
  transaction<T>(use: (tx: Tx) => Promise<T>, about?: Pick<Kind<unknown, unknown>, 'isArrival'>): Promise<T>
  /** Drops at most `limit` rows in small transactions. The statement takes the number of rows as its last parameter and returns one row for each. */
  dropInSlices(limit: number, text: string, ...values: readonly unknown[]): Promise<number>
}

interface Unit {
  readonly kind: Kind<unknown, unknown>
  readonly item: unknown
  readonly fence: Fence | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Writes that wait, and what commits them. */
interface Lane {
  readonly waiting: Unit[]
  running: Promise<void> | undefined
}

/** A write of its own statements. It shares no statement with others. */
const ALONE: Kind<readonly Statement[], readonly Row[]> = {
  keys: () => [],
  statements: ([statements = []]) => statements,
  results: (_, rows) => [rows.at(-1) ?? []],
}

export interface GroupCommitOptions {
  readonly settings: ConnectionSettings
  readonly process: string
  readonly clock: Clock
  readonly log: Logger
  readonly reader: Reader
  /** Connections for transactions of several round trips. */
  readonly transactions: number
  readonly onCommit?: ((units: number, tookMs: number) => void) | undefined
}

export class GroupCommit {
  readonly #options: GroupCommitOptions
  readonly #batches: MarkedConnection
  readonly #free: MarkedConnection[]
  readonly #transactions: readonly MarkedConnection[]
  readonly #asking: ((connection: MarkedConnection) => void)[] = []
  readonly #together: Lane = { waiting: [], running: undefined }
  readonly #apart: Lane = { waiting: [], running: undefined }
  #pending = 0
  #commits = 0
  #lastCommitMs: number | null = null
  #fault: string | null = null
  /** The fault that refused the last arriving message. */
  #arrivalFault: string | null = null
  #isClosed = false

  constructor(options: GroupCommitOptions) {
    this.#options = options
    const connection = (slot: number) => new MarkedConnection({ ...options, slot })
    this.#batches = connection(0)
    this.#transactions = Array.from({ length: options.transactions }, (_, at) => connection(at + 1))
    this.#free = [...this.#transactions]
  }

  get pending(): number {
    return this.#pending
  }

  get commits(): number {
    return this.#commits
  }

  get health(): StoreHealth {
    return { lastCommitMs: this.#lastCommitMs, fault: this.#fault ?? this.#arrivalFault }
  }

  /** Returns the writer of a caller whose writes fail with `isLeaseLost`, and change nothing, once the lease is lost. */
  under(fence?: Fence): Writer {
    const add = <I, R>(kind: Kind<I, R>, item: I): Promise<R> => this.#add(kind as Kind<unknown, unknown>, item, fence) as Promise<R>
    const write = async <R>(...statements: readonly Statement[]): Promise<R[]> => (await add(ALONE, statements)) as R[]
    return {
      add,
      write,
      transaction: (use, about) => this.#transact(fence, use, about),
      async dropInSlices(limit, text, ...values) {
        for (let dropped = 0; ; ) {
          const rows = Math.min(limit - dropped, SLICE_ROWS)
          const count = rows > 0 ? (await write(sql(text, ...values, rows))).length : 0
          dropped += count
          if (count < SLICE_ROWS) return dropped
        }
      },
    }
  }

  /** Commits the requested writes and refuses later ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#pending > 0) {
      await Promise.all([this.#together.running, this.#apart.running])
      await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all([this.#batches, ...this.#transactions].map((connection) => connection.close()))
  }

  #add(kind: Kind<unknown, unknown>, item: unknown, fence: Fence | undefined): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closedError())
    if (fence?.isLost) return Promise.reject(leaseLost(fence.name))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#pending++
    const lane = kind.isApart ? this.#apart : this.#together
    lane.waiting.push({ kind, item, fence, resolve, reject })
    lane.running ??= kind.isApart ? this.#runApart() : this.#runTogether()
    return promise
  }

  /** Commits until no write waits. */
  async #runTogether(): Promise<void> {
    const lane = this.#together
    // Callers that go on in the same tick share the first commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (lane.waiting.length > 0) await this.#commitAll(this.#batches, lane.waiting.splice(0, UNITS_MAX))
    lane.running = undefined
  }

  async #runApart(): Promise<void> {
    const lane = this.#apart
    await new Promise((resolve) => setImmediate(resolve))
    while (lane.waiting.length > 0)
      await this.#withConnection(async (connection) => {
        const kind = lane.waiting[0]?.kind
        const others = lane.waiting.findIndex((unit) => unit.kind !== kind)
        await this.#commitAll(connection, lane.waiting.splice(0, Math.min(UNITS_MAX, others === -1 ? UNITS_MAX : others)))
      })
    lane.running = undefined
  }

  async #commitAll(connection: MarkedConnection, units: readonly Unit[]): Promise<void> {
    const error = await this.#commit(connection, units)
    if (error === undefined) return
    if (units.length === 1 || isServerFault(error)) {
      for (const unit of units) this.#refuse(unit, error)
      return
    }
    // One of them failed: each gets a transaction of its own.
    for (const unit of units) {
      const own = await this.#commit(connection, [unit])
      if (own !== undefined) this.#refuse(unit, own)
    }
  }

  /** Resolves to the error when the transaction was not committed; no unit is settled then. */
  async #commit(connection: MarkedConnection, units: readonly Unit[]): Promise<unknown> {
    const startedMs = this.#options.clock.monotonicMs()
    const parts = compose(units)
    let statements: readonly (readonly Statement[])[]
    try {
      statements = parts.map(({ kind, items }) => kind.statements(items.map(({ item }) => item)))
    } catch (error) {
      return error
    }
    const epochs = epochsOf(units)
    for (let attempt = 1; ; attempt++) {
      const { isCommitted, results, error } = await connection.run(statements.flat(), epochs)
      if (isCommitted) {
        this.#pending -= units.length
        this.#committed(
          units.length,
          startedMs,
          units.some(({ kind }) => kind.isArrival === true),
        )
        await this.#settle(parts, statements, results)
        return undefined
      }
      if (sqlState(error) === NOT_BEGUN && epochs.length > 0) return this.#lostAmong(units, error)
      if (!isRepeatable(error) || attempt === ATTEMPTS_MAX) return error
    }
  }

  /** Finds the lost leases of a transaction that could not begin. */
  async #lostAmong(units: readonly Unit[], error: unknown): Promise<unknown> {
    let held: ReadonlySet<number>
    try {
      held = await this.#loseTaken(fencesOf(units))
    } catch (unreadable) {
      return unreadable
    }
    // A lease that is released in the commit that this one was to be still has its row.
    const lost = units.find(({ fence }) => fence && !held.has(fence.epoch))?.fence
    return lost ? leaseLost(lost.name) : error
  }

  /** `results` has an undefined for each statement whose answer did not arrive although the transaction was committed. */
  async #settle(
    parts: readonly Part[],
    statements: readonly (readonly Statement[])[],
    results: readonly (readonly Row[] | undefined)[],
  ): Promise<void> {
    let at = 0
    for (const [index, { kind, items }] of parts.entries()) {
      const count = statements[index]?.length ?? 0
      const rows = results.slice(at, at + count)
      at += count
      if (rows.length !== count || rows.includes(undefined)) {
        void this.#settleLater(kind, items)
        continue
      }
      try {
        const found = kind.results(itemsOf(items), rows as (readonly Row[])[])
        for (const [place, { resolve }] of items.entries()) resolve(found[place])
      } catch (error) {
        for (const { reject } of items) reject(error)
      }
    }
  }

  /**
   * Settles writes whose results did not arrive. A caller with a lease waits until the database answers: it may have begun
   * work that no other process begins while it holds the lease, such as the sending of a reply. Other callers get the error.
   */
  async #settleLater(kind: Kind<unknown, unknown>, units: readonly Unit[]): Promise<void> {
    for (let waiting = units; waiting.length > 0; ) {
      try {
        const rows = await this.#readAgain(kind, itemsOf(waiting))
        // The rows belong to this write only if its lease was still held when they were read.
        await this.#loseTaken(fencesOf(waiting))
        const found = kind.results(itemsOf(waiting), rows)
        for (const [place, { fence, resolve, reject }] of waiting.entries())
          if (fence?.isLost) reject(leaseLost(fence.name))
          else resolve(found[place])
        return
      } catch (error) {
        const isAway = kind.readAgain !== undefined && error instanceof AppError && error.isPassing
        waiting = waiting.filter(({ fence, reject }) => {
          if (isAway && fence && !fence.isLost) return true
          reject(fence?.isLost ? leaseLost(fence.name) : error)
          return false
        })
        if (waiting.length > 0) await this.#options.clock.sleep(READ_AGAIN_DELAY_MS)
      }
    }
  }

  async #readAgain(kind: Kind<unknown, unknown>, items: readonly unknown[]): Promise<readonly (readonly Row[])[]> {
    if (!kind.readAgain) throw awayError(UNKNOWN_RESULT)
    return Promise.all(kind.readAgain(items).map((statement) => this.#options.reader.all<Row>(statement)))
  }

  /** Ends the fences whose leases have no row any more. Resolves to the epochs of the others. */
  async #loseTaken(fences: readonly Fence[]): Promise<ReadonlySet<number>> {
    const epochs = fences.map(({ epoch }) => epoch)
    const rows = epochs.length > 0 ? await this.#options.reader.all<{ epoch: number }>(sql(HELD, epochs)) : []
    const held = new Set(rows.map(({ epoch }) => epoch))
    for (const fence of fences) if (!held.has(fence.epoch)) fence.lose()
    return held
  }

  #committed(units: number, startedMs: number, hasArrivals: boolean): void {
    this.#commits++
    this.#lastCommitMs = this.#options.clock.monotonicMs()
    const before = this.health.fault
    this.#fault = null
    if (hasArrivals) this.#arrivalFault = null
    if (before !== null && this.health.fault === null) this.#options.log.info('store accepts writes again')
    this.#options.onCommit?.(units, this.#lastCommitMs - startedMs)
  }

  #refuse(unit: Unit, error: unknown): void {
    this.#pending--
    unit.reject(this.#errorOf(error, unit.fence, unit.kind.isArrival))
  }

  #errorOf(error: unknown, fence: Fence | undefined, isArrival = false): unknown {
    if (fence?.isLost && (isLeaseLost(error) || sqlState(error) === NOT_BEGUN)) return leaseLost(fence.name)
    const fault = sqlState(error) === NOT_BEGUN ? 'another connection of this process took over' : faultOf(error)
    if (this.health.fault === null && fault !== undefined) this.#options.log.error('store cannot write', { error })
    this.#fault = fault ?? this.#fault
    if (isArrival) this.#arrivalFault = fault ?? this.#arrivalFault
    if (sqlState(error) === NOT_BEGUN) return awayError('The store cannot write now: the connection was replaced.', error)
    return storeError(error, 'The store cannot write now')
  }

  async #transact<T>(
    fence: Fence | undefined,
    use: (tx: Tx) => Promise<T>,
    { isArrival = false }: { readonly isArrival?: boolean } = {},
  ): Promise<T> {
    if (this.#isClosed) throw closedError()
    if (fence?.isLost) throw leaseLost(fence.name)
    this.#pending++
    try {
      return await this.#withConnection((connection) => this.#attempt(connection, { fence, use, isArrival }))
    } finally {
      this.#pending--
    }
  }

  async #attempt<T>(
    connection: MarkedConnection,
    { fence, use, isArrival }: { readonly fence: Fence | undefined; readonly isArrival: boolean; use(tx: Tx): Promise<T> },
  ): Promise<T> {
    const startedMs = this.#options.clock.monotonicMs()
    for (let attempt = 1; ; attempt++) {
      let transaction: Transaction | undefined
      try {
        transaction = await connection.begin(fence ? [fence.epoch] : [])
        const result = await use(txOf(transaction))
        await transaction.commit()
        this.#committed(1, startedMs, isArrival)
        return result
      } catch (error) {
        await transaction?.rollBack(error)
        if (isRepeatable(error) && attempt < ATTEMPTS_MAX) continue
        if (fence && sqlState(error) === NOT_BEGUN) await this.#lostAmong([{ fence } as Unit], error)
        throw this.#errorOf(error, fence, isArrival)
      }
    }
  }

  async #withConnection<T>(use: (connection: MarkedConnection) => Promise<T>): Promise<T> {
    const connection = this.#free.pop() ?? (await new Promise<MarkedConnection>((resolve) => this.#asking.push(resolve)))
    try {
      return await use(connection)
    } finally {
      const next = this.#asking.shift()
      if (next) next(connection)
      else this.#free.push(connection)
    }
  }
}

const txOf = (transaction: Transaction): Tx => {
  const all = <R>(text: string, ...values: readonly unknown[]): Promise<R[]> => transaction.all<R>(sql(text, ...values))
  return { all, get: async <R>(text: string, ...values: readonly unknown[]) => (await all<R>(text, ...values))[0] }
}

const isServerFault = (error: unknown): boolean => !isLeaseLost(error) && faultOf(error) !== undefined && !isRepeatable(error)

/** In one order, so that two processes cannot wait for each other. */
const epochsOf = (units: readonly Unit[]): readonly number[] =>
  [...new Set(units.flatMap(({ fence }) => fence?.epoch ?? []))].toSorted((a, b) => a - b)

/** Units that become one run of statements. */
interface Part {
  readonly kind: Kind<unknown, unknown>
  readonly items: Unit[]
}

const itemsOf = (units: readonly Unit[]): readonly unknown[] => units.map(({ item }) => item)

const fencesOf = (units: readonly Unit[]): readonly Fence[] => [...new Set(units.flatMap(({ fence }) => fence ?? []))]

/** Puts units of one kind together, as long as no earlier or later unit that stays in between touches the same rows. */
function compose(units: readonly Unit[]): readonly Part[] {
  const parts: Part[] = []
  let open = new Map<Kind<unknown, unknown>, Part>()
  let keys = new Set<string>()
  for (const unit of units) {
    if (unit.kind === (ALONE as Kind<unknown, unknown>)) {
      parts.push({ kind: unit.kind, items: [unit] })
      open = new Map()
      keys = new Set()
      continue
    }
    const own = unit.kind.keys(unit.item)
    if (own.some((key) => keys.has(key))) {
      open = new Map()
      keys = new Set()
    }
    for (const key of own) keys.add(key)
    const part = open.get(unit.kind)
    if (part) part.items.push(unit)
    else {
      const added = { kind: unit.kind, items: [unit] }
      open.set(unit.kind, added)
      parts.push(added)
    }
  }
  return parts
}
