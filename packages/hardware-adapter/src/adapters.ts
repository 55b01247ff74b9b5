/** The adapters that are there now, by their aliases. */
import { AppError, errorText, type Host } from '@sluice/sdk'
import type { Adapter } from './adapter.ts'
import { assignAliases } from './aliases.ts'
import type { AdapterSettings } from './config.ts'
import { findUsbAdapters, type UsbPlaces } from './find-usb-adapters.ts'
import type { FoundAdapter } from './found-adapter.ts'
import type { Native } from './native.ts'
import { unmetSettings } from './unmet-settings.ts'
import { watchDevices } from './watch-devices.ts'

/** The daemon has other things to do while it starts; who needs an adapter sooner has it looked for at once. */
export const START_AFTER_MS = 250

export interface PresentAdapter {
  readonly alias: string
  readonly adapter: Adapter
  readonly found: FoundAdapter
  /** Settings it cannot carry out. */
  readonly notes: readonly string[]
}

export interface Places extends UsbPlaces {
  /** Where device nodes are: `/dev`. */
  readonly dev: string
}

export interface Adapters {
  /** Begins to look, in the background, and to notice what comes and goes. */
  start(): void
  /** What the last look found. */
  present(): readonly PresentAdapter[]
  /**
   * The adapter of that alias, or the only one; waits for the first look. Throws `unavailable` if there is none, `not_found` for
   * an unknown alias, `invalid_request` where several are there and none is named.
   */
  pick(alias?: string): Promise<PresentAdapter>
  close(): Promise<void>
}

export function createAdapters(host: Host, native: Native, { settings, places }: { settings: AdapterSettings; places: Places }): Adapters {
  let present: readonly PresentAdapter[] = []
  let firstLook: Promise<void> | undefined
  let lastLook: Promise<void> = Promise.resolve()
  const closing = new AbortController()

  const look = async (): Promise<void> => {
    const named = await assignAliases(host.keyValue, await find(native, settings, places))
    const now = await presentOf(named)
    if (closing.signal.aborted) return
    const before = present
    present = now
    const gone = before.filter((old) => !present.includes(old))
    const fresh = present.filter((adapter) => !before.includes(adapter))
    for (const { adapter } of gone) await adapter.close()
    for (const { alias, adapter, notes } of fresh) for (const note of notes) host.log.warn(note, { adapter: alias, name: adapter.name })
    if (gone.length + fresh.length > 0) host.refresh(changeText(gone, fresh))
  }

  const presentOf = async (named: ReadonlyMap<string, FoundAdapter>): Promise<readonly PresentAdapter[]> => {
    if (named.size === 0) return []
    // What drives adapters is most of this feature, and most machines have none.
    const { openAdapter } = await import('./when-needed.ts')
    const open = (alias: string, found: FoundAdapter): PresentAdapter => {
      const adapter = openAdapter(found, { clock: host.clock, native, settings })
      return { alias, found, adapter, notes: unmetSettings(settings, adapter) }
    }
    return [...named].map(([alias, found]) => present.find((old) => isSame(old, alias, found)) ?? open(alias, found))
  }

  const lookOrWarn = (): Promise<void> =>
    look().catch((error: unknown) => {
      if (!closing.signal.aborted) host.log.warn('looking for I2C/SPI adapters failed', { error: errorText(error) })
    })
  /** One after the other: each compares with what the one before found. */
  const lookAgain = (): Promise<void> => {
    lastLook = lastLook.then(lookOrWarn)
    firstLook ??= lastLook
    return lastLook
  }

  return {
    start() {
      void host.clock.sleep(START_AFTER_MS, closing.signal).then(() => {
        if (closing.signal.aborted) return
        if (settings.transport === 'auto') void watchDevices(host.clock, places.dev, { look: lookAgain, signal: closing.signal })
        else void lookAgain()
      })
    },
    present: () => present,
    async pick(alias) {
      await (firstLook ?? lookAgain())
      if (present.length === 0) throw new AppError('unavailable', 'No I2C/SPI adapter is connected')
      const names = present.map((adapter) => adapter.alias).join(', ')
      const [first, second] = present
      const picked = alias === undefined ? first : present.find((adapter) => adapter.alias === alias)
      if (!picked) throw new AppError('not_found', `There is no adapter ${alias}; connected: ${names}`)
      if (alias === undefined && second)
        throw new AppError('invalid_request', `Several adapters are connected; give one as device: ${names}`)
      return picked
    },
    async close() {
      closing.abort()
      for (const { adapter } of present) await adapter.close()
    },
  }
}

async function find(native: Native, settings: AdapterSettings, places: Places): Promise<readonly FoundAdapter[]> {
  const { transport, i2c, spi } = settings
  if (transport === 'off') return []
  if (transport === 'sim') return [{ kind: 'sim', serial: 'simulated', place: 'simulated', path: 'simulated' }]
  const path = [i2c, spi].filter((part) => part !== undefined).join(' and ')
  const configured: FoundAdapter[] = path === '' ? [] : [{ kind: 'linux', serial: path, place: path, path }]
  return transport === 'linux' ? configured : [...configured, ...(await findUsbAdapters(native, places))]
}

const isSame = ({ alias: oldAlias, found: old }: PresentAdapter, alias: string, { kind, path, instance }: FoundAdapter): boolean =>
  oldAlias === alias && old.kind === kind && old.path === path && old.instance === instance

const changeText = (gone: readonly PresentAdapter[], fresh: readonly PresentAdapter[]): string =>
  [...gone.map(({ alias }) => `${alias} is gone`), ...fresh.map(({ alias, adapter }) => `${alias} is there (${adapter.name})`)].join(', ')
