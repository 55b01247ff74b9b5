/** The known devices, each with its line. A line follows its device when it is unplugged and plugged in elsewhere. */
import { AppError, type Host } from '@sluice/sdk'
import type { Device } from '../devices.ts'
import { createSignals, type WantedSignals } from '../signals.ts'
import { type BoardLine, lazyLine, NO_SIGNALS } from '../transports/board-line.ts'
import { type Machine, openChecked } from './machine.ts'

/** When there are more, a disconnected device is forgotten. */
const DEVICES_MAX = 128

interface Row {
  device: Device
  location: string | null
  line: BoardLine | undefined
}

export class DeviceTable {
  readonly #host: Host
  readonly #machine: Machine
  readonly #rows = new Map<string, Row>()
  #wanted: WantedSignals = new Map()

  constructor(host: Host, machine: Machine) {
    this.#host = host
    this.#machine = machine
  }

  /** See `Devices.all`. */
  all(): readonly Device[] {
    return [...this.#rows.values()]
      .map(({ device }) =>
        device.transport === 'native' ? { ...device, connected: this.#host.service('nativeGpio')?.isThere === true } : device,
      )
      .sort((a, b) => Number(b.connected) - Number(a.connected) || a.alias.localeCompare(b.alias, 'en', { numeric: true }))
  }

  get(alias: string): Device | undefined {
    return this.#rows.get(alias)?.device
  }

  /** Returns the place where the device is or was plugged in, or null when it is not known. */
  location(alias: string): string | null {
    return this.#rows.get(alias)?.location ?? null
  }

  /** Adds or replaces a device. Its line is dropped when the port has changed or the device is gone. */
  async put(device: Device, location: string | null = null): Promise<void> {
    const row = this.#rows.get(device.alias)
    this.#logChange(row?.device, device)
    if (row) {
      const { path, baud, connected } = row.device
      row.device = device
      row.location = location ?? row.location
      if (path !== device.path || baud !== device.baud || (connected && !device.connected)) await row.line?.drop()
    } else {
      this.#makeRoom()
      this.#rows.set(device.alias, { device, location, line: undefined })
    }
    this.#listen(device.alias)
  }

  /** Throws `not_found`. */
  line(alias: string): BoardLine {
    const row = this.#rows.get(alias)
    if (!row) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
    row.line ??= lazyLine(async () => {
      const { createLine } = await import('../on-demand.ts')
      const openSerial = async (path: string, baud: number, signal: AbortSignal) => {
        await this.#checkSame(row, path)
        return openChecked(this.#machine, path, baud, signal)
      }
      return createLine(this.#host, () => row.device, openSerial, createSignals(this.#host, alias))
    })
    return row.line
  }

  /** See `Registry.listenTo`. */
  listenTo(signals: WantedSignals): void {
    this.#wanted = signals
    for (const alias of this.#rows.keys()) this.#listen(alias)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#rows.values()].map((row) => row.line?.close()))
  }

  #listen(alias: string): void {
    const row = this.#rows.get(alias)
    const signals = this.#wanted.get(alias)
    if (!row || (!row.line && !signals)) return
    this.line(alias).listen((row.device.connected && signals) || NO_SIGNALS)
  }

  #makeRoom(): void {
    if (this.#rows.size < DEVICES_MAX) return
    const gone = [...this.#rows.values()].find(({ device }) => !device.connected)
    if (!gone) return
    this.#rows.delete(gone.device.alias)
    void gone.line?.close()
  }

  /** Throws `unavailable` when the port belongs to another device by now: the system reuses the names of ports. */
  async #checkSame({ device: { alias, usb }, location }: Row, path: string): Promise<void> {
    const found = usb && (await this.#machine.scan()).ports.find((port) => port.path === path)
    if (!usb || !found) return
    const isSame =
      found.usb?.vendor === usb.vendor &&
      found.usb.product === usb.product &&
      found.usb.serialNumber === usb.serialNumber &&
      (usb.serialNumber !== null || found.location === location)
    if (!isSame) throw new AppError('unavailable', `${alias} is not connected: another device is at ${path} now`, { retryAfterSecs: 1 })
  }

  #logChange(before: Device | undefined, { alias, connected, path, transport }: Device): void {
    // The feature that reaches this machine's pins knows whether they are there.
    if (transport === 'native' || (before?.connected ?? false) === connected) return
    if (connected) this.#host.log.info('board connected', { device: alias, path: path ?? transport })
    else this.#host.log.info('board disconnected', { device: alias })
  }
}
