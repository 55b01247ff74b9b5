/** Keeps track of the adapters that are connected, by their aliases. */
import { SerialQueue } from '@sluice/kit'
import { AppError, errorText, type Host } from '@sluice/sdk'
import { assignAliases } from './aliases.ts'
import type { AdapterSettings } from './config.ts'
import { type FoundAdapter, findUsbAdapters, type SystemPaths } from './find-adapters.ts'
import type { Native } from './native.ts'
import type { PresentAdapter, PresentAdapters } from './present-adapters.ts'
import { watchDevices } from './watch-devices.ts'

/** Delays the first search, so that it does not slow down the start of the daemon. A tool call before that searches at once. */
export const START_AFTER_MS = 250
/** The first search and the one that a tool call may start at the same time, with room to spare. */
const SEARCHES_MAX = 8

export class Adapters implements PresentAdapters {
  readonly #host: Host
  readonly #native: Native
  readonly #settings: AdapterSettings
  readonly #paths: SystemPaths
  /** Searches run one at a time, because each compares its result with that of the search before. */
  readonly #searches = new SerialQueue({ name: 'the search for adapters', tasksMax: SEARCHES_MAX })
  readonly #closing = new AbortController()
  #present: readonly PresentAdapter[] = []
  #firstSearch: Promise<void> | undefined

  constructor(host: Host, native: Native, { settings, paths }: { readonly settings: AdapterSettings; readonly paths: SystemPaths }) {
    this.#host = host
    this.#native = native
    this.#settings = settings
    this.#paths = paths
  }

  /** Starts to search in the background and to watch for adapters that come and go. */
  async start(): Promise<void> {
    const { clock } = this.#host
    await clock.sleep(START_AFTER_MS, this.#closing.signal)
    if (this.#closing.signal.aborted) return
    if (this.#settings.transport === 'auto') await watchDevices(clock, this.#paths.dev, () => this.#search(), this.#closing.signal)
    else await this.#search()
  }

  /** See `PresentAdapters.present`. */
  present(): readonly PresentAdapter[] {
    return this.#present
  }

  /** See `PresentAdapters.pick`. */
  async pick(alias?: string): Promise<PresentAdapter> {
    await (this.#firstSearch ?? this.#search())
    const [first, second] = this.#present
    if (first === undefined) throw new AppError('unavailable', 'No I2C/SPI adapter is connected')
    const names = this.#present.map((adapter) => adapter.alias).join(', ')
    const picked = alias === undefined ? first : this.#present.find((adapter) => adapter.alias === alias)
    if (!picked) throw new AppError('not_found', `There is no adapter ${alias}; connected: ${names}`)
    if (alias === undefined && second) throw new AppError('invalid_request', `Several adapters are connected; give one as device: ${names}`)
    return picked
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const { adapter } of this.#present) await adapter.close()
  }

  #search(): Promise<void> {
    const search = this.#searches.run(async () => {
      try {
        await this.#update()
      } catch (error) {
        if (!this.#closing.signal.aborted) this.#host.log.warn('search for I2C/SPI adapters failed', { error: errorText(error) })
      }
    })
    this.#firstSearch ??= search
    return search
  }

  async #update(): Promise<void> {
    const named = await assignAliases(this.#host.keyValue, await findAdapters(this.#native, this.#settings, this.#paths))
    const after = await this.#openAll(named)
    if (this.#closing.signal.aborted) return
    const before = this.#present
    this.#present = after
    const removed = before.filter((old) => !after.includes(old))
    const added = after.filter((adapter) => !before.includes(adapter))
    for (const { adapter } of removed) await adapter.close()
    for (const { alias, adapter, notes } of added)
      for (const note of notes) this.#host.log.warn(note, { adapter: alias, name: adapter.name })
    if (removed.length + added.length > 0) this.#host.refresh(changeText(removed, added))
  }

  /** Returns the adapters under their aliases. An adapter that was there before stays open. */
  async #openAll(named: ReadonlyMap<string, FoundAdapter>): Promise<readonly PresentAdapter[]> {
    if (named.size === 0) return []
    // The drivers are most of this feature's code, and most machines have no adapter.
    const { openAdapter, unsupportedSettings } = await import('./lazy.ts')
    return [...named].map(([alias, found]) => {
      const same = this.#present.find((old) => isSame(old, alias, found))
      if (same) return same
      const adapter = openAdapter(found, this.#settings, { clock: this.#host.clock, native: this.#native })
      return { alias, found, adapter, notes: unsupportedSettings(this.#settings, adapter) }
    })
  }
}

async function findAdapters(
  native: Native,
  { transport, i2c, spi }: AdapterSettings,
  paths: SystemPaths,
): Promise<readonly FoundAdapter[]> {
  if (transport === 'off') return []
  if (transport === 'sim') return [{ kind: 'sim', serial: 'simulated', port: 'simulated', path: 'simulated' }]
  const path = [i2c, spi].filter((part) => part !== undefined).join(' and ')
  const configured: FoundAdapter[] = path === '' ? [] : [{ kind: 'linux', serial: path, port: path, path }]
  return transport === 'linux' ? configured : [...configured, ...(await findUsbAdapters(native, paths))]
}

const isSame = ({ alias: oldAlias, found: old }: PresentAdapter, alias: string, { kind, path, instance }: FoundAdapter): boolean =>
  oldAlias === alias && old.kind === kind && old.path === path && old.instance === instance

const changeText = (removed: readonly PresentAdapter[], added: readonly PresentAdapter[]): string =>
  [...removed.map(({ alias }) => `${alias} is gone`), ...added.map(({ alias, adapter }) => `${alias} is there (${adapter.name})`)].join(
    ', ',
  )
