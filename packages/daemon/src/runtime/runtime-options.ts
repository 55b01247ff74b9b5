/** The options of a runtime. */
import type { Approver } from '@sluice/agent'
import type { ConfigSource } from '@sluice/config'
import type { Clock, Logger, ShardRange } from '@sluice/sdk'
import type { DataDirLock } from '@sluice/store'

export interface RuntimeOptions extends ConfigSource {
  readonly profile: string
  readonly version: string
  /** True: only warnings and errors are logged, whatever `[log] level` says. */
  readonly quiet?: boolean
  /** False: no turn will run, so no provider is needed. Default: true, if features are built. */
  readonly needsModel?: boolean | undefined
  /** Gets the log lines; default: standard error. Secrets are masked before. */
  readonly logger?: Logger | undefined
  /** Sends the requests to platforms and models; default: Node's `fetch`. Addresses that a model names are requested without it. */
  readonly fetch?: typeof fetch | undefined
  /** Decides tool calls that need an approval, where the turn's own caller cannot; default: people in chats are asked. */
  readonly approve?: Approver
  readonly clock?: Clock
  /** True: a data directory whose database is gone may start with an empty one. */
  readonly newDatabase?: boolean
  /** The shards that this process owns once it starts work; all unless given. */
  readonly shards?: readonly ShardRange[]
  /** The lock of the data directory, if the caller holds it. */
  readonly lock?: DataDirLock
  /**
   * `store`: features are not built, so that nothing is connected, offered or sent, and the configuration is not read: every
   * setting has its default. `config`: the same, with the configuration of the file. `features`: the features of the configuration on
   * an empty store of their own, so that the database of the data directory is not opened. Default: everything.
   */
  readonly only?: 'store' | 'config' | 'features' | undefined
}
