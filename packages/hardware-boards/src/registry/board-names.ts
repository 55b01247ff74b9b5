/** Turns found boards and configured boards into devices with aliases. */
import type { Host } from '@sluice/sdk'
import { Aliases } from './aliases.ts'
import type { DeviceTable } from './device-table.ts'
import type { Entry } from './entries.ts'
import type { FoundBoard } from './find-boards.ts'

export const DEFAULT_BAUD = 115_200

export class BoardNames {
  readonly #host: Host
  readonly #entries: readonly Entry[]
  readonly #devices: DeviceTable
  /** The aliases of the devices that callers wait for, by their places. */
  readonly #expected = new Map<string, string>()
  #aliases: Promise<Aliases> | undefined

  constructor(host: Host, entries: readonly Entry[], devices: DeviceTable) {
    this.#host = host
    this.#entries = entries
    this.#devices = devices
  }

  /** Updates the devices to the boards of a scan. A device that is not among them is marked as disconnected. */
  async update(found: readonly FoundBoard[]): Promise<void> {
    const isInUse = (alias: string): boolean => this.#devices.get(alias)?.connected === true
    this.#aliases ??= Aliases.load(this.#host.keyValue, this.#host.clock.nowMs, isInUse)
    const aliases = await this.#aliases
    const unfilled = new Set(this.#entries)
    const taken = new Set<string>()
    for (const board of found) {
      const entry = entryFor(board, unfilled)
      if (entry) unfilled.delete(entry)
      taken.add(await this.#putFound(aliases, board, entry))
    }
    for (const entry of unfilled) taken.add(await this.#putUnfilled(aliases, entry, taken))
    for (const device of this.#devices.all())
      if (device.connected && !taken.has(device.alias)) await this.#devices.put({ ...device, connected: false })
  }

  /**
   * Gives the alias to any board that appears at the place of this device, because a board may come back with another
   * identity after a reset. Returns a function that ends this.
   */
  expect(alias: string): () => void {
    const location = this.#devices.location(alias)
    if (location === null) return () => undefined
    this.#expected.set(location, alias)
    return () => void this.#expected.delete(location)
  }

  async #putFound(aliases: Aliases, found: FoundBoard, entry: Entry | undefined): Promise<string> {
    const alias = await this.#aliasOfFound(aliases, found, entry)
    const { board, path, usb, location } = found
    const baud = entry?.baud ?? DEFAULT_BAUD
    await this.#devices.put({ alias, board, transport: 'serial', path, baud, usb, connected: true }, location)
    return alias
  }

  async #aliasOfFound(aliases: Aliases, found: FoundBoard, entry: Entry | undefined): Promise<string> {
    const expected = found.location === null ? undefined : this.#expected.get(found.location)
    // A new device takes over the alias that is expected at its place, or the alias of the entry that it fills.
    const adopted = aliases.find(found.identity) ? undefined : (expected ?? (entry && aliases.find(entry.identity)?.alias))
    if (adopted === undefined) return aliases.bind(found.identity, found.family, found.path)
    await aliases.rebind(adopted, found.identity, found.path)
    return adopted
  }

  /** Adds the device of an entry for which no board was found; other transports than `serial` need none. */
  async #putUnfilled(aliases: Aliases, entry: Entry, taken: ReadonlySet<string>): Promise<string> {
    const { board, transport, path, baud } = entry
    const alias = await aliasOfUnfilled(aliases, entry, taken)
    const before = this.#devices.get(alias)
    const lastPath = path ?? before?.path ?? null
    await this.#devices.put({ alias, board, transport, path: lastPath, baud, usb: before?.usb ?? null, connected: transport !== 'serial' })
    return alias
  }
}

/** Returns the alias of the device that filled the entry last, or a new one. */
async function aliasOfUnfilled(
  aliases: Aliases,
  { transport, path, family, identity }: Entry,
  taken: ReadonlySet<string>,
): Promise<string> {
  if (transport === 'serial' && !aliases.find(identity)) {
    const last = path === null ? aliases.latestOf(family, taken) : aliases.latestAt(path)
    if (last && !taken.has(last.alias)) return last.alias
  }
  return aliases.bind(identity, family, path)
}

/** Returns the entry that a found board fills: the entry of its port, or one of the same board without a port. */
function entryFor({ entryPath, board }: FoundBoard, unfilled: ReadonlySet<Entry>): Entry | undefined {
  const serial = [...unfilled].filter(({ transport }) => transport === 'serial')
  return (
    serial.find((entry) => entry.path === entryPath) ??
    serial.find((entry) => entry.path === null && entry.board === board && board !== undefined)
  )
}
