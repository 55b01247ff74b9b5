/** The registry of boards: scans for them, names them, watches for changes, and gives access to their lines. */

import { endsWithin, signalScope } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Device, Devices, Port, UsbSeen } from '../devices.ts'
import type { WantedSignals } from '../signals.ts'
import type { BoardLine } from '../transports/board-line.ts'
import { BoardNames } from './board-names.ts'
import { BoardScanner } from './board-scanner.ts'
import { DeviceTable } from './device-table.ts'
import { entriesOf } from './entries.ts'
import type { Machine } from './machine.ts'
import { pickDevice } from './pick-device.ts'
import { thisMachine } from './this-machine.ts'

/** Keeps the first scan out of the start of the daemon. A call that needs a board earlier scans at once. */
export const START_AFTER_MS = 250
/** The longest time a caller waits for a scan. */
export const DISCOVERY_MS_MAX = 2000
/** The longest time a scan takes; the rest is for naming the boards. */
const SCAN_MS_MAX = 1500
/**
 * The pause before another scan when the first one failed, for example on a machine that is still booting; it doubles each
 * time.
 */
const RETRY_MS = 5000
const RETRIES_MAX = 4
/** The interval of the scans while a caller waits for a board that was reset. */
const COME_BACK_SCAN_MS = 250
/** A restarting board has left USB by then, or restarts without leaving it. */
const LEAVE_MS_MAX = 1500

export class Registry implements Devices {
  readonly #host: Host
  readonly #config: PeripheralsConfig
  readonly #machine: Machine
  readonly #table: DeviceTable
  readonly #names: BoardNames
  readonly #scanner: BoardScanner
  readonly #closing = new AbortController()
  #scanning: Promise<void> | undefined
  #first: Promise<void> | undefined
  #isReady = false
  #hasScanned = false

  /** Tests replace members of `machine`. */
  constructor(host: Host, config: PeripheralsConfig, machine: Partial<Machine> = {}) {
    this.#host = host
    this.#config = config
    this.#machine = { ...thisMachine(host), ...machine }
    const entries = config.enabled ? entriesOf(config.boards) : []
    this.#table = new DeviceTable(host, this.#machine)
    this.#names = new BoardNames(host, entries, this.#table)
    this.#scanner = new BoardScanner(host, config, entries, this.#machine)
  }

  /** Scans now, and again whenever devices come and go, until `close`. */
  start(): void {
    const { signal } = this.#closing
    void this.#host.clock.sleep(START_AFTER_MS, signal).then(() => {
      if (signal.aborted) return
      void this.#scanUntilItWorks()
      if (this.#config.discover) void this.#watch()
    })
  }

  all(): readonly Device[] {
    return this.#table.all()
  }

  seen(): readonly UsbSeen[] {
    return this.#scanner.usb
  }

  async ready(signal: AbortSignal): Promise<void> {
    if (!this.#isReady) await this.#inTime(this.#firstScan(), signal)
  }

  async discover(signal: AbortSignal): Promise<readonly Device[]> {
    await this.#scanAgain(signal)
    return this.all()
  }

  pick(alias: string | undefined, fits: (device: Device) => boolean = () => true): Device {
    return pickDevice(this.all(), this.seen(), alias, fits)
  }

  /** Returns the line to the pins of a device. Throws `not_found`. */
  line(alias: string): BoardLine {
    return this.#table.line(alias)
  }

  async withPort<Result>(alias: string, signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result> {
    return this.line(alias).withPort(signal, work)
  }

  async comeBack(alias: string, timeoutMs: number, signal: AbortSignal): Promise<Device> {
    const { clock } = this.#host
    let wasGone = this.#table.get(alias)?.connected !== true
    const startMs = clock.monotonicMs()
    const stopExpecting = this.#names.expect(alias)
    try {
      for (;;) {
        await this.#scanAgain(signal)
        const device = this.#table.get(alias)
        if (!device) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
        wasGone ||= !device.connected
        const passedMs = clock.monotonicMs() - startMs
        if (device.connected && (wasGone || passedMs >= Math.min(LEAVE_MS_MAX, timeoutMs))) return device
        if (passedMs >= timeoutMs)
          throw new AppError('upstream_timeout', `${alias} did not come back within ${Math.round(timeoutMs / 1000)} s`)
        await clock.sleep(COME_BACK_SCAN_MS, signal)
      }
    } finally {
      stopExpecting()
    }
  }

  /** Sets the wanted signals. The lines of boards without wanted signals are closed when idle. */
  listenTo(signals: WantedSignals): void {
    this.#table.listenTo(signals)
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#scanning
    await this.#table.close()
  }

  /** Joins the scan that runs, or begins one. */
  #scan(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve()
    this.#scanning ??= this.#scanOnce().finally(() => {
      this.#scanning = undefined
    })
    return this.#scanning
  }

  async #scanOnce(): Promise<void> {
    const { clock, log } = this.#host
    using limit = signalScope([this.#closing.signal], SCAN_MS_MAX, clock)
    try {
      await this.#scanner.scan(async (found) => {
        this.#hasScanned = true
        if (this.#closing.signal.aborted) return
        const hadBoards = this.all().length > 0
        await this.#names.update(found)
        if (!hadBoards && this.all().length > 0) this.#host.refresh('a board was found')
      }, limit.signal)
    } catch (error) {
      if (!this.#closing.signal.aborted) log.warn('board scan failed', { error })
    }
  }

  /** Waits for a scan that begins after this call. */
  #scanAgain(signal: AbortSignal): Promise<void> {
    return this.#inTime(
      (this.#scanning ?? Promise.resolve()).then(() => this.#scan()),
      signal,
    )
  }

  #firstScan(): Promise<void> {
    this.#first ??= this.#scan().then(() => {
      this.#isReady = true
    })
    return this.#first
  }

  async #scanUntilItWorks(): Promise<void> {
    const { signal } = this.#closing
    await this.#firstScan()
    for (let retry = 0; retry < RETRIES_MAX && !this.#hasScanned && !signal.aborted; retry++) {
      await this.#host.clock.sleep(RETRY_MS * 2 ** retry, signal)
      if (!this.#hasScanned) await this.#scan()
    }
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing
    try {
      await this.#machine.watch(() => void this.#scanAgain(signal).catch(() => undefined), signal)
    } catch (error) {
      this.#host.log.warn('watch for boards failed; boards that come and go are not noticed', { error })
    }
  }

  /** Resolves when `done` does, or when the time for a scan is over. Throws `aborted`. */
  async #inTime(done: Promise<void>, signal: AbortSignal): Promise<void> {
    await endsWithin(done, DISCOVERY_MS_MAX, this.#host.clock, signal)
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
  }
}
