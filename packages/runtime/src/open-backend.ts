/** Opens the store of a database server, where the configuration chooses one in place of the embedded database. */
import { hostname } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import {
  type ConfigSource,
  clusterSection,
  type LoadedConfig,
  parseConfig,
  parseToml,
  readConfig,
  readConfigText,
  type StoreConfig,
  storeSection,
} from '@sluice/config'
import { systemClock } from '@sluice/kit'
import {
  AppError,
  type Clock,
  type ClusterMember,
  type Feature,
  howToGet,
  type Logger,
  loadFeatures,
  ROWS,
  type Store,
  type StoreBackend,
  type StoreToolOptions,
} from '@sluice/sdk'
import { openDatabaseRecord } from '@sluice/store/database-record'
import { openRowSigner } from '@sluice/store/row-signer'
import { secretKeyIds } from '@sluice/store/secret-box'

/** An open store, and what it calls once the runtime exists. */
export interface OpenBackend {
  readonly store: Store
  log: Logger
  onCommit: (units: number, tookMs: number) => void
}

export interface BackendOptions extends ConfigSource {
  /** The release that runs. */
  readonly version: string
  readonly clock?: Clock
  /** True: a database that lacks what this machine has seen is accepted. */
  readonly newDatabase?: boolean
  /** As in `RuntimeOptions`. */
  readonly only?: 'store' | 'config' | 'features' | undefined
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Resolves to undefined for the embedded database. Rejects with `config_invalid` when the build has no such backend. */
export async function openBackend(options: BackendOptions, config: LoadedConfig): Promise<OpenBackend | undefined> {
  if (options.only === 'features') return undefined
  const section = options.only === 'store' ? await readStoreSection(options) : config.core(storeSection)
  if (!section || section.backend === 'sqlite') return undefined
  const member = memberOf(options, options.only === 'store' ? await readClusterSection(options) : config)
  return open(options, section, member)
}

/** How this process takes part in a cluster; undefined without `[cluster]`. */
function memberOf({ version }: BackendOptions, config: LoadedConfig | undefined): ClusterMember | undefined {
  if (!config) return undefined
  const { name, node = hostname(), roles, advertise } = config.core(clusterSection)
  return name === undefined ? undefined : { name, node, roles, url: advertise ?? null, version }
}

async function open(options: BackendOptions, section: StoreConfig, cluster: ClusterMember | undefined): Promise<OpenBackend> {
  const backend = await backendOf(options.features, section.backend)
  const late: { log: Logger; onCommit: OpenBackend['onCommit'] } = { log: SILENT, onCommit: () => undefined }
  const record = openDatabaseRecord(options.dataDir)
  const store = await backend.open({
    ...settingsOf(options, section),
    record: options.newDatabase ? { ...record, read: () => undefined } : record,
    readers: section.read_connections,
    writers: section.write_connections,
    ...(cluster && { cluster }),
    keyIdNow: () => keyIdIn(options.dataDir),
    log: {
      debug: (...line) => late.log.debug(...line),
      info: (...line) => late.log.info(...line),
      warn: (...line) => late.log.warn(...line),
      error: (...line) => late.log.error(...line),
    },
    onCommit: (units, tookMs) => late.onCommit(units, tookMs),
  })
  return Object.assign(late, { store })
}

/** A command needs no release to find the data. */
type ToolsSource = Omit<BackendOptions, 'only'>

const settingsOf = ({ dataDir, clock = systemClock }: ToolsSource, section: StoreConfig): Omit<StoreToolOptions, 'dataDir' | 'log'> => ({
  url: section.url?.reveal() ?? '',
  schema: section.schema,
  tls: section.tls,
  ...(section.ca_file !== undefined && { caFile: isAbsolute(section.ca_file) ? section.ca_file : resolve(dataDir, section.ca_file) }),
  connectMs: section.connect_timeout_secs * 1000,
  node: `${hostname()}:${dataDir}`,
  keyIds: secretKeyIds(dataDir),
  signer: openRowSigner(dataDir),
  clock,
})

/** Undefined also while the file cannot be read. */
function keyIdIn(dataDir: string): string | undefined {
  try {
    return secretKeyIds(dataDir)[0]
  } catch {
    return undefined
  }
}

/** The backend and the settings of a command that works with the data of a database server without a daemon. */
export interface StoreTools {
  readonly backend: StoreBackend
  readonly options: StoreToolOptions
}

/** `url` replaces the one of the configuration, which need not choose the backend. Rejects with `config_invalid` without an address. */
export async function openStoreTools(options: ToolsSource & { readonly log: Logger }, url?: string): Promise<StoreTools> {
  const section = (await readConfig(options)).core(storeSection)
  const settings = settingsOf(options, section)
  const address = url ?? settings.url
  if (address === '') throw new AppError('config_invalid', 'The address of the server is missing: set [store] url, SVC_STORE_URL or --url.')
  const backend = await backendOf(options.features, 'postgres')
  return { backend, options: { ...settings, url: address, dataDir: options.dataDir, log: options.log } }
}

/** The tools of the server that the configuration chooses; undefined for the embedded database. Other sections need not be valid. */
export async function configuredStoreTools(options: ToolsSource & { readonly log: Logger }): Promise<StoreTools | undefined> {
  const section = await readStoreSection(options)
  if (!section || section.backend === 'sqlite') return undefined
  const backend = await backendOf(options.features, section.backend)
  return { backend, options: { ...settingsOf(options, section), dataDir: options.dataDir, log: options.log } }
}

async function backendOf(features: readonly Feature[], name: string): Promise<StoreBackend> {
  const [id] = ROWS.find(([, row]) => row.backend === name && row.kind === 'store') ?? []
  await loadFeatures(features, (feature) => feature.id === id)
  const backend = features.find(({ storeBackend }) => storeBackend?.name === name)?.storeBackend
  if (backend) return backend
  const hint = id === undefined ? '' : ` To get it, ${howToGet(id)}.`
  throw new AppError('config_invalid', `store.backend = "${name}" is not in this build.${hint}`)
}

/**
 * Calls `use` with the source of a daemon's configuration here: the file, or in a cluster the configuration in the database with the keys
 * of the file. Reads only `[store]` and `[cluster]`, so that a configuration that is not valid can be repaired.
 */
export async function withClusterConfig<Source extends BackendOptions, Result>(
  source: Source,
  use: (source: Source & ConfigSource) => Promise<Result>,
): Promise<Result> {
  const member = await readMember(source)
  const section = member && (await readStoreSection(source))
  if (!section) return use(source)
  const { store } = await open(source, section, member)
  try {
    const shared = store.cluster?.config
    return await use((await shared?.read()) ? { ...source, shared } : source)
  } finally {
    await store.close()
  }
}

/** Resolves to undefined without `[cluster]`, and for a node whose configuration is its own file. */
async function readMember(options: BackendOptions): Promise<ClusterMember | undefined> {
  const section = options.configValues ? undefined : await readClusterSection(options)
  return section?.core(clusterSection).config === 'file' ? undefined : memberOf(options, section)
}

/** Reads `[cluster]` alone; undefined without it. */
async function readClusterSection(options: BackendOptions): Promise<LoadedConfig | undefined> {
  const { configFile, env } = options
  const text = options.configValues ? '' : await readConfigText(configFile)
  if (!text.includes('cluster') && !options.configValues) return undefined
  const { cluster } = options.configValues ?? (await parseToml(text, configFile))
  if (cluster === undefined) return undefined
  const own = Object.entries(env).filter(([name]) => name.startsWith('SVC_CLUSTER_'))
  return readSection(options, { cluster, store: { backend: 'postgres', url: 'postgres://unread' } }, own)
}

const readSection = (options: BackendOptions, values: object, env: readonly [string, string | undefined][]): Promise<LoadedConfig> =>
  parseConfig({ ...options, features: [], env: Object.fromEntries(env), configValues: { ...values } }, '')

/** Reads `[store]` alone, for commands that work with a configuration that is not valid. */
async function readStoreSection(options: BackendOptions): Promise<StoreConfig | undefined> {
  const { configFile, env } = options
  const text = options.configValues ? '' : await readConfigText(configFile)
  // A file that does not name the backend need not be readable.
  if (!text.includes('postgres') && !options.configValues && !env.SVC_STORE_BACKEND) return undefined
  const { store } = options.configValues ?? (await parseToml(text, configFile))
  const own = Object.entries(env).filter(([name]) => name.startsWith('SVC_STORE_'))
  return (await readSection(options, store === undefined ? {} : { store }, own)).core(storeSection)
}
