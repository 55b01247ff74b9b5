/** The parts of a runtime that its features stand on: log, store, ownership, files of people and the event bus. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createScrub } from '@sluice/agent'
import { configuredSecrets, type LoadedConfig, logSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import {
  createEventBus,
  createHideSecrets,
  createSettings,
  type EventBus,
  type HideSecrets,
  OwnedFiles,
  observationOf,
  quietRepeats,
  RecentLog,
  type Settings,
} from '@sluice/runtime'
import { type ComponentLogger, createLogger, type LogLevel } from '@sluice/runtime/log'
import type { OpenBackend } from '@sluice/runtime/open-backend'
import { createTraceScope, type TraceScope } from '@sluice/runtime/outbound-fetch'
import type { Clock, Logger, SharedConfig, Store } from '@sluice/sdk'
import { openDataDir, openStore } from '@sluice/store'
import { InForce } from './in-force.ts'
import type { RuntimeOptions } from './runtime-options.ts'

/** The options and the configuration at the start of a runtime. */
export interface Start {
  readonly options: RuntimeOptions
  /** The text that `config` was read from. */
  readonly configText: string
  readonly config: LoadedConfig
  /** The open store of a database server; undefined for the embedded database. */
  readonly backend: OpenBackend | undefined
  /** The version of the configuration of the cluster that `configText` is made of. */
  readonly sharedVersion?: number | undefined
}

export interface Opened {
  readonly version: string
  readonly profile: string
  readonly dataDir: string
  /** The text that the first configuration was read from. */
  readonly configText: string
  /** The configuration of the cluster and the version that `configText` is made of, where the node has none of its own. */
  readonly sharedConfig: { readonly config: SharedConfig; readonly version: number } | undefined
  readonly startedAtMs: number
  readonly clock: Clock
  readonly log: ComponentLogger
  readonly recentLog: RecentLog
  readonly traces: TraceScope
  readonly store: Store
  /** The shards of this process: none until the daemon starts it. */
  readonly ownership: ShardOwnership
  /** The files of people. */
  readonly files: OwnedFiles
  /** Masks the configured secrets, and text that looks like a credential. */
  readonly scrub: (text: string) => string
  /** Masks the configured secrets in text and data that leaves the daemon. */
  readonly hideSecrets: HideSecrets
  readonly bus: EventBus
  /** The configuration, for editors. */
  readonly settings: Settings
  /** The configuration in force. */
  readonly config: () => LoadedConfig
}

/** Opens the store. Throws if it cannot be used. */
export function openParts(start: Start): Opened & { readonly inForce: InForce } {
  const { options, configText, config, sharedVersion: version = 0 } = start
  const { clock = systemClock, dataDir, shards } = options
  const inForce = new InForce(config, configuredSecrets(config, options.features))
  const recentLog = new RecentLog()
  const log = openLog(start, { inForce, clock, recentLog })
  const storeLog = quietRepeats(log.child('store'), clock)
  const store = openStoreOf(start, { inForce, clock, log, storeLog })
  const secrets = () => inForce.secrets
  const hideSecrets = createHideSecrets(secrets)
  const bus = createEventBus({ clock, hide: hideSecrets, run: store.cluster?.name ?? recentLog.run, shared: store.cluster?.events })
  bus.observe((event) => {
    const observation = observationOf(event)
    if (observation) inForce.observe(observation)
  })
  return {
    version: options.version,
    profile: options.profile,
    dataDir,
    configText,
    sharedConfig: options.shared && { config: options.shared, version },
    startedAtMs: clock.nowMs(),
    clock,
    log,
    recentLog,
    traces: createTraceScope(inForce.wantsTraces),
    store,
    ownership: new ShardOwnership({ store, clock, log: storeLog, ...(shards && { ranges: shards }) }),
    files: new OwnedFiles({ store, dataDir, clock, log: storeLog }),
    scrub: createScrub(secrets),
    hideSecrets,
    bus,
    settings: createSettings(options),
    config: inForce.config,
    inForce,
  }
}

export const logLevelOf = ({ quiet }: RuntimeOptions, config: LoadedConfig): LogLevel => (quiet ? 'warn' : config.core(logSection).level)

interface LogParts {
  readonly inForce: InForce
  readonly clock: Clock
  readonly recentLog: RecentLog
}

function openLog({ options, config }: Start, { inForce, clock, recentLog }: LogParts): ComponentLogger {
  const { format } = config.core(logSection)
  return createLogger({
    secrets: () => inForce.secrets,
    level: logLevelOf(options, config),
    // A person reads the output of a command, also where it is piped; by default, only the daemon's log goes to a collector.
    format: options.quiet && format === 'auto' ? 'text' : format,
    stream: options.logger ?? process.stderr,
    clock,
    onLine: recentLog.add,
  })
}

interface StoreParts {
  readonly inForce: InForce
  readonly clock: Clock
  readonly log: ComponentLogger
  readonly storeLog: Logger
}

function openStoreOf({ options, backend }: Start, { inForce, clock, log, storeLog }: StoreParts): Store {
  const onCommit = (units: number, tookMs: number): void => inForce.observe({ kind: 'commit', units, tookMs })
  if (backend) {
    backend.log = storeLog
    backend.onCommit = onCommit
    return backend.store
  }
  if (options.only === 'features') return openEmptyStore(clock, log.child('store'))
  const { dataDir, newDatabase = false, lock } = options
  return openDataDir({ dataDir, newDatabase, lock, clock, log: log.child('store'), onCommit })
}

/** Opens a store in a folder of its own, which its `close` removes. */
function openEmptyStore(clock: Clock, log: ComponentLogger): Store {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const store = openStore({ file: join(folder, 'sluice.db'), clock, log })
  const close = async (): Promise<void> => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { ...store, close }
}
