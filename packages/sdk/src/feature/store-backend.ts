/** The port of databases that can hold the store in place of the embedded one. */
import type { ClusterMember } from '../store/cluster-store.ts'
import type { DatabaseRecord } from '../store/seen-database.ts'
import type { RowSigner, RowSurvey, UnverifiedRow } from '../store/signed-rows.ts'
import type { Store } from '../store/store.ts'
import type { Logger } from '../values/logger.ts'
import type { Clock } from './host.ts'

export interface StoreBackendOptions {
  /** The address of the server, with its password. */
  readonly url: string
  /** The schema of the tables. */
  readonly schema: string
  /** `auto`: no TLS on loopback, and `verify` elsewhere. */
  readonly tls: 'auto' | 'off' | 'verify'
  /** The absolute path of the certificates of the authority that signed the server's certificate. */
  readonly caFile?: string
  readonly connectMs: number
  /** Connections that read. */
  readonly readers: number
  /** Connections for transactions of several steps. */
  readonly writers: number
  /** The name of this machine and its data directory. A later process of a node takes over from an earlier one. */
  readonly node: string
  /** How this process takes part in a cluster; absent for a daemon that shares the database with no other. */
  readonly cluster?: ClusterMember
  /** The ids of the keys for secrets, the one that encrypts first; empty without a key. */
  readonly keyIds: readonly string[]
  /** Signs the configuration, devices and grants. It creates the key of a database that has none. */
  readonly signer: RowSigner
  /** How far the database had come when this machine last saw it. */
  readonly record: DatabaseRecord
  /** The id of the key that encrypts now, which is rotated while a daemon runs; undefined without a key. */
  readonly keyIdNow: () => string | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Called after each commit with the number of its writes and its duration. Must not throw. */
  readonly onCommit: (units: number, tookMs: number) => void
}

/** Where a command that works without a daemon finds the data. */
export type StoreToolOptions = Omit<StoreBackendOptions, 'record' | 'readers' | 'writers' | 'keyIdNow' | 'onCommit'> & {
  readonly dataDir: string
}

export interface StoreMoveOptions extends StoreToolOptions {
  /** `server`: the embedded database is the source. `embedded`: the server is. The source is not changed. */
  readonly to: 'server' | 'embedded'
  /** True: an unfinished move is thrown away. False: it goes on. */
  readonly restart: boolean
  readonly onProgress: (progress: StoreMoveProgress) => void
  readonly signal: AbortSignal
}

export interface StoreMoveProgress {
  readonly phase: 'copy' | 'verify'
  readonly table: string
  /** Rows of all tables so far, of `rowsTotal`. */
  readonly rows: number
  readonly rowsTotal: number
}

/** A finished move. Every table was read again from both databases and is equal. */
export interface StoreMove {
  readonly tables: readonly { readonly name: string; readonly rows: number; readonly sha256: string }[]
  /** Rows that an earlier, interrupted attempt had copied. */
  readonly resumedRows: number
  /** The number of secrets that were decrypted, and the paths of the others. */
  readonly secrets: number
  readonly unreadableSecrets: readonly string[]
  /** The records of the audit log, and what is wrong with it in both databases; null when all is well. */
  readonly auditRecords: number
  readonly auditFault: string | null
  /** The configuration of a cluster, which the embedded database has no place for; null without one. */
  readonly clusterConfig: { readonly version: number; readonly text: string } | null
}

/** The rows that were marked after the data was recovered to an earlier time. */
export interface StoreRecovered {
  readonly replies: number
  readonly messages: number
  readonly turns: number
  readonly approvals: number
  readonly runs: number
}

export interface StoreSignOptions extends StoreToolOptions {
  /** Gets what stands without a right HMAC, and resolves to what to do with which rows; undefined changes nothing. */
  readonly decide: (survey: RowSurvey) => Promise<{ readonly does: 'sign' | 'remove'; readonly rows: readonly UnverifiedRow[] } | undefined>
}

export interface StoreBackend {
  /** The value of `[store] backend`. */
  readonly name: string
  /** Copies everything from the embedded database, or back to it. Rejects with `conflict` next to a daemon and for a target with data. */
  move?(options: StoreMoveOptions): Promise<StoreMove>
  /** Ends the unfinished work of data that was recovered to the state of a time. Rejects with `conflict` next to a daemon. */
  recovered?(options: StoreToolOptions & { readonly atMs: number }): Promise<StoreRecovered>
  /**
   * Encrypts the secrets of features that have the old key with the new one, while daemons may run. Resolves to the number of changed
   * secrets and the paths of those that the old key could not decrypt either. Rejects with `conflict` while daemons of other machines run.
   * Without an old key it changes nothing and only checks that.
   */
  reencrypt?(
    options: StoreToolOptions & { readonly oldId: string | null },
  ): Promise<{ readonly changed: number; readonly unreadable: readonly string[] }>
  /**
   * Signs or removes what `decide` names, and from then on makes every node demand HMACs. Resolves to false when nothing was decided. Rejects
   * with `conflict` while a node of a release that writes none runs.
   */
  sign?(options: StoreSignOptions): Promise<boolean>
  /** Rejects with `unavailable` when the database cannot be used now, and with `config_invalid` for wrong settings. */
  open(options: StoreBackendOptions): Promise<Store>
}
