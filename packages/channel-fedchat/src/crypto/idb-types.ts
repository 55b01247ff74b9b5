/** The part of the IndexedDB API (https://w3c.github.io/IndexedDB/) that the channel uses. TypeScript has the types only for browsers. */
import * as untyped from 'fake-indexeddb'

export interface IdbRequest<Result = unknown> {
  readonly result: Result
  readonly error: unknown
  onsuccess: (() => void) | null
  onerror: (() => void) | null
}

export interface IdbOpenRequest extends IdbRequest<IdbDatabase> {
  onupgradeneeded: (() => void) | null
}

export interface IdbIndex {
  readonly keyPath: string | string[]
  readonly unique: boolean
  readonly multiEntry: boolean
}

export interface IdbStore {
  readonly name: string
  readonly keyPath: string | string[] | null
  readonly autoIncrement: boolean
  readonly indexNames: Iterable<string>
  readonly transaction: IdbTransaction
  index(name: string): IdbIndex
  createIndex(name: string, keyPath: string | string[], options: { unique: boolean; multiEntry: boolean }): IdbIndex
  put(value: unknown, key?: unknown): IdbRequest
  add(value: unknown, key?: unknown): IdbRequest
  delete(query: unknown): IdbRequest
  clear(): IdbRequest
}

export interface IdbTransaction {
  readonly db: IdbDatabase
  objectStore(name: string): IdbStore
  addEventListener(type: 'complete', listener: () => void): void
}

export interface IdbDatabase {
  readonly name: string
  readonly version: number
  readonly objectStoreNames: Iterable<string>
  transaction(names: readonly string[], ...options: unknown[]): IdbTransaction
  createObjectStore(name: string, options: { keyPath: string | string[] | null; autoIncrement: boolean }): IdbStore
  close(): void
}

export interface IdbCursor {
  readonly source: IdbStore | { readonly objectStore: IdbStore }
  readonly primaryKey: unknown
  update(value: unknown): IdbRequest
  delete(): IdbRequest
}

export interface IdbKeyRange {
  includes(key: unknown): boolean
}

interface IdbModule {
  readonly indexedDB: {
    open(name: string, version?: number): IdbOpenRequest
    deleteDatabase(name: string): IdbRequest
  }
  readonly IDBObjectStore: { readonly prototype: IdbStore }
  readonly IDBDatabase: { readonly prototype: IdbDatabase }
  readonly IDBCursor: { readonly prototype: IdbCursor }
  readonly IDBKeyRange: new (...args: never[]) => IdbKeyRange
}

export const idb = untyped as unknown as IdbModule
