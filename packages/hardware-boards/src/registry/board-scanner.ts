/** Scans this machine for boards: USB devices, configured ports, and other ports whose firmware answers. */
import { untilAborted } from '@sluice/kit'
import { AppError, type Clock, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Port, UsbSeen } from '../devices.ts'
import { capabilitiesOf } from '../protocol/answers.ts'
import { Link } from '../protocol/link.ts'
import { DEFAULT_BAUD } from './board-names.ts'
import type { Entry } from './entries.ts'
import { type FoundBoard, findBoards, mayBeAsked, UNKNOWN_FAMILY } from './find-boards.ts'
import { type Machine, openChecked } from './machine.ts'
import type { SeenPort, UsbScan } from './usb.ts'

const EMPTY_SCAN: UsbScan = { ports: [], usb: [] }

export class BoardScanner {
  readonly #host: Host
  readonly #config: PeripheralsConfig
  readonly #entries: readonly Entry[]
  readonly #machine: Machine
  /** The entry of each port that the configuration names, by the path that the last scan would show. */
  #configured: ReadonlyMap<string, { readonly name: string; readonly path: string }> = new Map()
  /** The board by the port that was asked; undefined when it did not answer. */
  readonly #answers = new Map<string, string | undefined>()
  #usb: readonly UsbSeen[] = []

  constructor(host: Host, config: PeripheralsConfig, entries: readonly Entry[], machine: Machine) {
    this.#host = host
    this.#config = config
    this.#entries = entries
    this.#machine = machine
  }

  /** The USB devices of the last scan. */
  get usb(): readonly UsbSeen[] {
    return this.#usb
  }

  /** Calls `onFound` with the boards, and once more after ports were asked. Ends soon after `signal` aborts. */
  async scan(onFound: (found: readonly FoundBoard[]) => Promise<void>, signal: AbortSignal): Promise<void> {
    const scan = await this.#scanUsb(signal)
    this.#usb = scan.usb
    this.#configured = await this.#readConfigured()
    const ports = await this.#withConfigured(scan.ports)
    // Reports the boards that USB names first, because asking the others may take all the time there is.
    await onFound(this.#boardsAt(ports))
    if (this.#config.discover && (await this.#ask(ports, signal))) await onFound(this.#boardsAt(ports))
  }

  #boardsAt(ports: readonly SeenPort[]): readonly FoundBoard[] {
    return findBoards(ports, this.#named()).map((found) => ({ ...found, entryPath: this.#configured.get(found.path)?.path ?? found.path }))
  }

  /** A name below /dev/serial leads to another port each time the board is plugged in. */
  async #readConfigured() {
    const named = this.#entries.map(async ({ transport, path, name }) =>
      transport === 'serial' && path !== null ? [[await this.#machine.scannedPath(path), { name, path }] as const] : [],
    )
    return new Map((await Promise.all(named)).flat())
  }

  /** Throws `upstream_timeout` when the scan has not ended by the time `signal` aborts. */
  async #scanUsb(signal: AbortSignal): Promise<UsbScan> {
    const isNeeded = this.#config.discover || this.#entries.some(({ transport }) => transport === 'serial')
    if (!isNeeded) return EMPTY_SCAN
    return untilAborted(this.#machine.scan(), signal, 'The scan was aborted').catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'aborted') throw new AppError('upstream_timeout', 'USB does not answer')
      throw error
    })
  }

  /** Adds the configured ports that exist but that the scan does not show. Without `discover`, leaves out all others. */
  async #withConfigured(ports: readonly SeenPort[]): Promise<readonly SeenPort[]> {
    const takesAny = this.#entries.some(({ transport, path }) => transport === 'serial' && path === null)
    const shown = this.#config.discover || takesAny ? ports : ports.filter(({ path }) => this.#configured.has(path))
    const hidden = [...this.#configured.keys()].filter((path) => !shown.some((port) => port.path === path))
    const existing = await Promise.all(
      hidden.map(async (path) => ((await exists(this.#machine, path)) ? [{ path, usb: null, location: null }] : [])),
    )
    return [...shown, ...existing.flat()]
  }

  /** Asks each port that belongs to no USB device for its firmware, once while it exists. Resolves to whether one was asked. */
  async #ask(ports: readonly SeenPort[], signal: AbortSignal): Promise<boolean> {
    const present = new Set(ports.map(({ path }) => path))
    for (const path of this.#answers.keys()) if (!present.has(path)) this.#answers.delete(path)
    const unasked = ports.filter((port) => mayBeAsked(port) && !this.#answers.has(port.path) && !this.#configured.has(port.path))
    await Promise.all(
      unasked.map(async ({ path }) => {
        const asking = askFirmware(() => openChecked(this.#machine, path, DEFAULT_BAUD, signal), this.#host.clock, signal)
        this.#answers.set(path, await untilAborted(asking, signal, 'The scan was aborted').catch(() => undefined))
      }),
    )
    return unasked.length > 0
  }

  /** Returns the boards that the firmware or the configuration names, by path. */
  #named(): ReadonlyMap<string, string> {
    const named = new Map<string, string>()
    for (const [path, name] of this.#answers) if (name !== undefined) named.set(path, name)
    for (const [path, { name }] of this.#configured) named.set(path, name)
    return named
  }
}

const exists = (machine: Machine, path: string): Promise<boolean> =>
  machine.check(path).then(
    () => true,
    () => false,
  )

/**
 * Asks the firmware on a port for the name of its board. Returns `device` when it answers without a name, and undefined when
 * nothing answers. Never throws.
 */
async function askFirmware(open: () => Promise<Port>, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  try {
    const link = new Link(await open(), 'the port', clock)
    try {
      await link.hello(signal, 1)
      const asking = link.request('capabilities', {}, { signal, repeatable: true }).then((result) => capabilitiesOf('the port', result))
      return await asking.then(
        ({ board }) => board ?? UNKNOWN_FAMILY,
        () => UNKNOWN_FAMILY,
      )
    } finally {
      await link.close()
    }
  } catch {
    return undefined
  }
}
