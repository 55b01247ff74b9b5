/** The port of databases that can hold the store in place of the embedded one. */
import type { ClusterMember } from './cluster-store.ts'
import type { Clock } from './host.ts'
import type { Logger } from './logger.ts'
import type { Store } from './store.ts'

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
  readonly clock: Clock
  readonly log: Logger
  /** Called after each commit with the number of its writes and its duration. Must not throw. */
  readonly onCommit: (units: number, tookMs: number) => void
}

export interface StoreBackend {
  /** The value of `[store] backend`. */
  readonly name: string
  /** Rejects with `unavailable` when the database cannot be used now, and with `config_invalid` for wrong settings. */
  open(options: StoreBackendOptions): Promise<Store>
}
