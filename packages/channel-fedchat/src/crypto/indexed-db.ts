/**
 * An IndexedDB in memory that reports each committed transaction. The crypto library stores its keys in IndexedDB, which Node does not
 * have; the channel writes the reported changes to the encrypted store of the daemon and fills the database from there.
 */
import { deserialize, serialize } from 'node:v8'
import {
  type IdbCursor,
  type IdbDatabase,
  type IdbKeyRange,
  type IdbRequest,
  type IdbStore,
  type IdbTransaction,
  idb,
} from './idb-types.ts'

/** A record of an object store. `key` is the encoded key of IndexedDB; `value` is undefined for a deleted record. */
export interface RecordChange {
  readonly store: string
  readonly key: string
  readonly value: string | undefined
}

/** The object stores of a database and their indexes, which a new database gets before its records. */
export interface DatabaseShape {
  readonly version: number
  readonly stores: readonly {
    readonly name: string
    readonly keyPath: string | string[] | null
    readonly autoIncrement: boolean
    readonly indexes: readonly {
      readonly name: string
      readonly keyPath: string | string[]
      readonly unique: boolean
      readonly multiEntry: boolean
    }[]
  }[]
}

export interface SavedDatabase {
  readonly shape: DatabaseShape
  readonly records: readonly (RecordChange & { readonly value: string })[]
}

type Listener = (changes: readonly RecordChange[]) => void

interface Journal {
  readonly listener: Listener
  /** The keys of each store, which the deletion of a range needs. */
  readonly keys: Map<string, Set<string>>
  /** The connections of the library, which it leaves open. A database with an open connection cannot be deleted. */
  readonly connections: Set<IdbDatabase>
}

/** A change in a transaction that has not ended. The key of an added record is known when its request has succeeded. */
interface Step {
  readonly store: string
  readonly key: () => unknown
  readonly value: string | undefined
}

/** The library adds this to the names of its databases. */
const SUFFIX = '::matrix-sdk-crypto'

/** IndexedDB belongs to the whole process: the journals of its databases by name, and the ends of reservations. */
const journals = new Map<string, Journal>()
const reservations = new Map<string, Promise<void>>()
const steps = new WeakMap<IdbTransaction, Step[]>()

/** One database, which belongs to one owner at a time. */
export class JournaledDatabase {
  readonly name: string
  readonly #release: () => void

  private constructor(name: string, release: () => void) {
    this.name = name
    this.#release = release
  }

  /** Waits until an earlier owner has dropped the database of this name. */
  static async reserve(name: string): Promise<JournaledDatabase> {
    installIndexedDb()
    const { promise, resolve } = Promise.withResolvers<void>()
    const before = reservations.get(name)
    reservations.set(name, promise)
    await before
    return new JournaledDatabase(name, () => {
      if (reservations.get(name) === promise) reservations.delete(name)
      resolve()
    })
  }

  /** Creates the database with these records; `listener` gets the changes of each later transaction that commits, in order. */
  async open(saved: SavedDatabase | undefined, listener: Listener): Promise<void> {
    const keys = new Map<string, Set<string>>()
    if (saved) await fill(this.#fullName, saved)
    for (const { store, key } of saved?.records ?? []) keysOf(keys, store).add(key)
    journals.set(this.#fullName, { listener, keys, connections: new Set() })
  }

  shape(): Promise<DatabaseShape> {
    return shapeOf(this.#fullName)
  }

  /** Deletes the database, frees its memory and ends the reservation. */
  async drop(): Promise<void> {
    for (const connection of journals.get(this.#fullName)?.connections ?? []) connection.close()
    journals.delete(this.#fullName)
    await done(idb.indexedDB.deleteDatabase(this.#fullName))
    this.#release()
  }

  get #fullName(): string {
    return `${this.name}${SUFFIX}`
  }
}

/** Makes IndexedDB available to the crypto library, which looks for it among the globals of a browser. Idempotent. */
function installIndexedDb(): void {
  if ('indexedDB' in globalThis) return
  for (const [name, value] of Object.entries(idb)) {
    if (/^IDB|^indexedDB$/.test(name)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  }
  watchMethods()
}

async function shapeOf(name: string): Promise<DatabaseShape> {
  const db = await done(idb.indexedDB.open(name))
  try {
    const names = [...db.objectStoreNames]
    if (names.length === 0) return { version: db.version, stores: [] }
    const transaction = db.transaction(names)
    const stores = names.map((store) => {
      const { keyPath, autoIncrement, indexNames, ...rest } = plain(transaction.objectStore(store))
      return {
        name: store,
        keyPath,
        autoIncrement,
        indexes: indexNames.map((index) => {
          const { keyPath: path, unique, multiEntry } = rest.index(index)
          return { name: index, keyPath: path, unique, multiEntry }
        }),
      }
    })
    return { version: db.version, stores }
  } finally {
    db.close()
  }
}

const plain = (store: IdbStore) => ({
  keyPath: store.keyPath,
  autoIncrement: store.autoIncrement,
  indexNames: [...store.indexNames],
  index: (name: string) => store.index(name),
})

/** Writes the shape and the records in the transaction that creates the database. */
async function fill(name: string, { shape, records }: SavedDatabase): Promise<void> {
  const request = idb.indexedDB.open(name, shape.version)
  request.onupgradeneeded = () => {
    const stores = new Map<string, IdbStore>()
    for (const { name: store, keyPath, autoIncrement, indexes } of shape.stores) {
      const created = request.result.createObjectStore(store, { keyPath, autoIncrement })
      for (const { name: index, keyPath: path, unique, multiEntry } of indexes) created.createIndex(index, path, { unique, multiEntry })
      stores.set(store, created)
    }
    for (const { store, key, value } of records) {
      const target = stores.get(store)
      if (target?.keyPath === null) target.put(decode(value), decode(key))
      else target?.put(decode(value))
    }
  }
  ;(await done(request)).close()
}

/** Reports the changes that the methods of stores and cursors make. Only this package has these classes. */
function watchMethods(): void {
  const { IDBObjectStore: Store, IDBCursor: Cursor, IDBDatabase: Database } = idb
  const { put, add, delete: remove, clear } = Store.prototype
  Store.prototype.put = function (this: IdbStore, value: unknown, key?: unknown) {
    return noteWrite(this, put.apply(this, key === undefined ? [value] : [value, key]), value)
  }
  Store.prototype.add = function (this: IdbStore, value: unknown, key?: unknown) {
    return noteWrite(this, add.apply(this, key === undefined ? [value] : [value, key]), value)
  }
  Store.prototype.delete = function (this: IdbStore, query: unknown) {
    noteDeletion(this, query)
    return remove.call(this, query)
  }
  Store.prototype.clear = function (this: IdbStore) {
    noteDeletion(this, undefined)
    return clear.call(this)
  }
  const { transaction } = Database.prototype
  Database.prototype.transaction = function (this: IdbDatabase, ...args) {
    journals.get(this.name)?.connections.add(this)
    return transaction.apply(this, args)
  }
  const { update, delete: removeAt } = Cursor.prototype
  Cursor.prototype.update = function (this: IdbCursor, value: unknown) {
    const { primaryKey } = this
    note(storeOf(this), { key: () => primaryKey, value: encode(value) })
    return update.call(this, value)
  }
  Cursor.prototype.delete = function (this: IdbCursor) {
    const { primaryKey } = this
    note(storeOf(this), { key: () => primaryKey, value: undefined })
    return removeAt.call(this)
  }
}

const storeOf = ({ source }: IdbCursor): IdbStore => ('objectStore' in source ? source.objectStore : source)

function noteWrite(store: IdbStore, request: IdbRequest, value: unknown): IdbRequest {
  note(store, { key: () => request.result, value: encode(value) })
  return request
}

function noteDeletion(store: IdbStore, query: unknown): void {
  const journal = journals.get(store.transaction.db.name)
  if (!journal) return
  if (query !== undefined && !(query instanceof idb.IDBKeyRange)) {
    note(store, { key: () => query, value: undefined })
    return
  }
  // Records that this transaction has written itself are not in `keys` yet.
  const written = (steps.get(store.transaction) ?? []).filter((step) => step.store === store.name).map(({ key }) => key)
  const known = Array.from(keysOf(journal.keys, store.name), (key) => () => decode(key))
  for (const key of [...known, ...written]) {
    note(store, {
      key: () => (query === undefined || (query as IdbKeyRange).includes(key()) ? key() : undefined),
      value: undefined,
    })
  }
}

function note(store: IdbStore, step: Omit<Step, 'store'>): void {
  const { transaction } = store
  const journal = journals.get(transaction.db.name)
  if (!journal) return
  let list = steps.get(transaction)
  if (!list) {
    list = []
    steps.set(transaction, list)
    // Registered before any listener of the library, so that the changes are known when its operation ends.
    transaction.addEventListener('complete', () => commit(journal, transaction))
  }
  list.push({ store: store.name, ...step })
}

function commit({ listener, keys }: Journal, transaction: IdbTransaction): void {
  const last = new Map<string, RecordChange>()
  for (const { store, key: keyOf, value } of steps.get(transaction) ?? []) {
    const found = keyOf()
    if (found === undefined) continue
    const key = encode(found)
    last.set(`${store}\0${key}`, { store, key, value })
  }
  steps.delete(transaction)
  for (const { store, key, value } of last.values()) {
    if (value === undefined) keysOf(keys, store).delete(key)
    else keysOf(keys, store).add(key)
  }
  if (last.size > 0) listener([...last.values()])
}

function keysOf(keys: Map<string, Set<string>>, store: string): Set<string> {
  const known = keys.get(store) ?? new Set()
  keys.set(store, known)
  return known
}

const encode = (value: unknown): string => serialize(value).toString('base64')
const decode = (text: string): unknown => deserialize(Buffer.from(text, 'base64'))

function done<Result>(request: IdbRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}
