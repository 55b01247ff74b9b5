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
  /** The ports that the configuration names. */
  readonly #paths: ReadonlySet<string>
  /** The board by the port that was asked; undefined when it did not answer. */
  readonly #answers = new Map<string, string | undefined>()
  #usb: readonly UsbSeen[] = []

  constructor(host: Host, config: PeripheralsConfig, entries: readonly Entry[], machine: Machine) {
    this.#host = host
    this.#config = config
    this.#entries = entries
    this.#machine = machine
    this.#paths = new Set(entries.flatMap(({ transport, path }) => (transport === 'serial' && path !== null ? [path] : [])))
  }

  /** The USB devices of the last scan. */
  get usb(): readonly UsbSeen[] {
    return this.#usb
  }

  /** Calls `onFound` with the boards, and once more after ports were asked. Ends soon after `signal` aborts. */
  async scan(onFound: (found: readonly FoundBoard[]) => Promise<void>, signal: AbortSignal): Promise<void> {
    const scan = await this.#scanUsb(signal)
    this.#usb = scan.usb
    const ports = await this.#withConfigured(scan.ports)
    // Reports the boards that USB names first, because asking the others may take all the time there is.
    await onFound(findBoards(ports, this.#named()))
    if (this.#config.discover && (await this.#ask(ports, signal))) await onFound(findBoards(ports, this.#named()))
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
    const shown = this.#config.discover || takesAny ? ports : ports.filter(({ path }) => this.#paths.has(path))
    const hidden = [...this.#paths].filter((path) => !shown.some((port) => port.path === path))
    const existing = await Promise.all(
      hidden.map(async (path) => ((await exists(this.#machine, path)) ? [{ path, usb: null, location: null }] : [])),
    )
    return [...shown, ...existing.flat()]
  }

  /** Asks each port that belongs to no USB device for its firmware, once while it exists. Resolves to whether one was asked. */
  async #ask(ports: readonly SeenPort[], signal: AbortSignal): Promise<boolean> {
    const present = new Set(ports.map(({ path }) => path))
    for (const path of this.#answers.keys()) if (!present.has(path)) this.#answers.delete(path)
    const unasked = ports.filter((port) => mayBeAsked(port) && !this.#answers.has(port.path) && !this.#paths.has(port.path))
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
    for (const { transport, path, name } of this.#entries) if (transport === 'serial' && path !== null) named.set(path, name)
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
