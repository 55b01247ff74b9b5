/** The devices that are known now, each with its line, which follows it as it is unplugged and comes back. */
import { AppError, type Host } from '@sluice/sdk'
import type { Device } from '../devices.ts'
import { createSignals } from '../signals.ts'
import type { BoardLine } from '../transports/board-line.ts'
import { lazyLine } from '../transports/lazy-line.ts'
import { type Machine, openChecked } from './machine.ts'

/** Devices that went away are forgotten beyond it. */
const DEVICES_MAX = 128

/** Of each alias. */
export type WantedSignals = ReadonlyMap<string, ReadonlySet<string>>

const NOTHING: ReadonlySet<string> = new Set()

export interface HeldDevices {
  /** As `Devices.all`. */
  all(): readonly Device[]
  get(alias: string): Device | undefined
  /** Where it is plugged in, or was last; null: not known. */
  location(alias: string): string | null
  /** What is known of it from now on; its line is dropped when that leads elsewhere. */
  put(device: Device, location?: string | null): Promise<void>
  /** Throws `not_found`. */
  line(alias: string): BoardLine
  /** See `Registry.listenTo`. */
  listenTo(signals: WantedSignals): void
  close(): Promise<void>
}

interface Held {
  device: Device
  location: string | null
  line: BoardLine | undefined
}

export function createHeldDevices(host: Host, machine: Machine): HeldDevices {
  const held = new Map<string, Held>()
  let wanted: WantedSignals = new Map()

  /** Ports are handed on: a moment after both were away, another board may be where this one was. */
  const checkSame = async ({ device: { alias, usb }, location }: Held, path: string): Promise<void> => {
    const there = usb && (await machine.look()).ports.find((port) => port.path === path)
    if (!usb || !there) return
    const isSame =
      there.usb?.vendor === usb.vendor &&
      there.usb.product === usb.product &&
      there.usb.serialNumber === usb.serialNumber &&
      (usb.serialNumber !== null || there.location === location)
    if (!isSame) throw new AppError('unavailable', `${alias} is not connected: another device is at ${path} now`, { retryAfterSecs: 1 })
  }

  const line = (alias: string): BoardLine => {
    const entry = held.get(alias)
    if (!entry) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
    entry.line ??= lazyLine(async () => {
      const { createLine } = await import('../when-needed.ts')
      return createLine({
        device: () => entry.device,
        host,
        async openSerial(path, baud, signal) {
          await checkSame(entry, path)
          return openChecked(machine, path, baud, signal)
        },
        onSignal: createSignals(host, alias),
      })
    })
    return entry.line
  }
  const listen = (alias: string): void => {
    const entry = held.get(alias)
    const signals = wanted.get(alias)
    if (!entry || (!entry.line && !signals)) return
    line(alias).listen((entry.device.connected && signals) || NOTHING)
  }
  /** Makes room, by a device that is not here. */
  const forgetOne = (): void => {
    if (held.size < DEVICES_MAX) return
    const gone = [...held.values()].find(({ device }) => !device.connected)
    if (!gone) return
    held.delete(gone.device.alias)
    void gone.line?.close()
  }
  const tell = (before: Device | undefined, { alias, connected, path, transport }: Device): void => {
    // Of this machine's own pins another feature knows whether they are there.
    if (transport === 'native' || (before?.connected ?? false) === connected) return
    if (connected) host.log.info('a board is connected', { device: alias, path: path ?? transport })
    else host.log.info('a board was unplugged', { device: alias })
  }

  return {
    all: () =>
      [...held.values()]
        .map(({ device }) =>
          device.transport === 'native' ? { ...device, connected: host.service('nativeGpio')?.isThere === true } : device,
        )
        .sort((a, b) => Number(b.connected) - Number(a.connected) || a.alias.localeCompare(b.alias, 'en', { numeric: true })),
    get: (alias) => held.get(alias)?.device,
    location: (alias) => held.get(alias)?.location ?? null,
    async put(device, location = null) {
      const entry = held.get(device.alias)
      tell(entry?.device, device)
      if (entry) {
        const { path, baud, connected } = entry.device
        entry.device = device
        entry.location = location ?? entry.location
        if (path !== device.path || baud !== device.baud || (connected && !device.connected)) await entry.line?.drop()
      } else {
        forgetOne()
        held.set(device.alias, { device, location, line: undefined })
      }
      listen(device.alias)
    },
    line,
    listenTo(signals) {
      wanted = signals
      for (const alias of held.keys()) listen(alias)
    },
    async close() {
      await Promise.all([...held.values()].map((entry) => entry.line?.close()))
    },
  }
}
