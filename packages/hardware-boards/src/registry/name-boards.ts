/** From boards that were found, and those that are configured, to devices under their names. */
import type { Host } from '@sluice/sdk'
import { type Aliases, loadAliases } from './aliases.ts'
import type { Entry } from './entries.ts'
import type { FoundBoard } from './find-boards.ts'
import type { HeldDevices } from './held-devices.ts'

export const DEFAULT_BAUD = 115_200

export interface NameBoards {
  /** All that is there now: what was there before and is not in it is unplugged. */
  take(found: readonly FoundBoard[]): Promise<void>
  /** While a device is waited for at its place, whatever comes there is that device. Returns the way out. */
  await(alias: string): () => void
}

export function createNameBoards(host: Host, entries: readonly Entry[], held: HeldDevices): NameBoards {
  const awaited = new Map<string, string>()
  let aliases: Promise<Aliases> | undefined

  const aliasOf = async (names: Aliases, found: FoundBoard, entry: Entry | undefined): Promise<string> => {
    const waiting = found.location === null ? undefined : awaited.get(found.location)
    // An entry that was empty until now is this device's from now on, as is a name somebody waits for at this very place.
    const adopted = names.of(found.identity) ? undefined : (waiting ?? (entry && names.of(entry.identity)?.alias))
    if (adopted === undefined) return names.bind(found.identity, found.family, found.path)
    await names.rebind(adopted, found.identity, found.path)
    return adopted
  }
  /** The name of an entry nothing fills: of the device that did so last, if one did. */
  const emptyAlias = async (names: Aliases, { transport, path, family, identity }: Entry, taken: ReadonlySet<string>): Promise<string> => {
    if (transport === 'serial' && !names.of(identity)) {
      const last = path === null ? names.latest(family, taken) : names.at(path)
      if (last && !taken.has(last.alias)) return last.alias
    }
    return names.bind(identity, family, path)
  }

  return {
    async take(found) {
      aliases ??= loadAliases(host.keyValue, host.clock.nowMs, (alias) => held.get(alias)?.connected === true)
      const names = await aliases
      const free = new Set(entries)
      const taken = new Set<string>()
      for (const board of found) {
        const entry = entryFor(board, free)
        if (entry) free.delete(entry)
        const alias = await aliasOf(names, board, entry)
        taken.add(alias)
        const { path, usb, location } = board
        const baud = entry?.baud ?? DEFAULT_BAUD
        await held.put({ alias, board: board.board, transport: 'serial', path, baud, usb, connected: true }, location)
      }
      for (const entry of free) {
        const { board, transport, path, baud } = entry
        const alias = await emptyAlias(names, entry, taken)
        taken.add(alias)
        const before = held.get(alias)
        const where = path ?? before?.path ?? null
        await held.put({ alias, board, transport, path: where, baud, usb: before?.usb ?? null, connected: transport !== 'serial' })
      }
      for (const device of held.all()) if (device.connected && !taken.has(device.alias)) await held.put({ ...device, connected: false })
    },
    await(alias) {
      const location = held.location(alias)
      if (location === null) return () => undefined
      awaited.set(location, alias)
      return () => void awaited.delete(location)
    },
  }
}

/** The entry a found board fills: that of its port, else one of the same board wherever it is. */
function entryFor({ path, board }: FoundBoard, free: ReadonlySet<Entry>): Entry | undefined {
  const serial = [...free].filter(({ transport }) => transport === 'serial')
  return (
    serial.find((entry) => entry.path === path) ??
    serial.find((entry) => entry.path === null && entry.board === board && board !== undefined)
  )
}
