/**
 * Access control for devices: a device serves one client at a time and one transaction at a time, a written pin stays reserved
 * for its client, and every write is recorded in the audit log first. The rules are in docs/contract.md#hardware.
 */
import { SerialQueue } from '@sluice/kit'
import { AppError, type DeviceHolder, type HeldPin, type Host, type ToolContext } from '@sluice/sdk'

/** Transactions of one client on one device, the running one included. */
const TRANSACTIONS_MAX = 16
const DEVICES_MAX = 256
/** Reserved pins that operators are shown. */
const PINS_SHOWN_MAX = 1000

export interface DeviceLimits {
  /** How long a device stays with its client after the client's last call. */
  readonly lease_secs: number
  /** How long a written pin stays with its client; 0 turns reservations off. */
  readonly pin_reservation_secs: number
}

export interface DeviceUse {
  /** The alias of the device. */
  readonly device: string
  readonly tool: string
  readonly context: ToolContext
  /** The written data for the audit log: JSON without secrets. Absent when the transaction only reads. */
  readonly write?: Readonly<Record<string, unknown>>
  /** The pins the transaction writes. They are reserved for the client afterwards. */
  readonly pins?: readonly (number | string)[]
}

export interface DeviceGuard {
  /**
   * Runs one transaction after all earlier transactions of the same client. Throws `conflict` while another client holds the
   * device or one of the pins, `aborted` when the call is aborted while it waits, and `unavailable` when too many transactions
   * wait or the write cannot be recorded; in all these cases `work` does not run. `work` handles an abort that comes later.
   */
  use<Result>(use: DeviceUse, work: () => Promise<Result>): Promise<Result>
  /** Resolves to the client that has each device, and to the reserved pins, for operators. */
  held(): Promise<HeldDevices>
}

export interface HeldDevices {
  readonly holders: ReadonlyMap<string, DeviceHolder>
  readonly pins: ReadonlyMap<string, readonly HeldPin[]>
}

/**
 * Creates a guard. Leases live in memory and end with the process; pin reservations are kept in `host.keyValue` and outlive a
 * restart.
 */
export const createDeviceGuard = (host: Host, limits: DeviceLimits): DeviceGuard => new LeasingGuard(host, limits)

interface Lease {
  readonly holder: string
  readonly queue: SerialQueue
  /** When an idle lease expires, on the monotonic clock. 0 until a transaction has run, so a refused call leaves no lease. */
  untilMs: number
}

interface Reservation {
  readonly holder: string
  /** When the reservation expires, on the wall clock, which survives a restart. */
  readonly untilMs: number
}

/** The beginning of the keys of reserved pins. */
const PIN_KEYS = 'pin:'

class LeasingGuard implements DeviceGuard {
  readonly #host: Host
  readonly #limits: DeviceLimits
  readonly #leases = new Map<string, Lease>()

  constructor(host: Host, limits: DeviceLimits) {
    this.#host = host
    this.#limits = limits
  }

  async use<Result>(use: DeviceUse, work: () => Promise<Result>): Promise<Result> {
    const lease = this.#leaseOf(use.device, holderOf(use.context))
    return lease.queue.run(() => this.#transact(lease, use, work), use.context.signal)
  }

  async held(): Promise<HeldDevices> {
    const { clock, keyValue } = this.#host
    const [monotonicMs, nowMs] = [clock.monotonicMs(), clock.nowMs()]
    const holders = new Map<string, DeviceHolder>()
    for (const [device, { holder, queue, untilMs }] of this.#leases) {
      if (!queue.isIdle) holders.set(device, { client: holder, untilMs: null })
      else if (untilMs > monotonicMs) holders.set(device, { client: holder, untilMs: nowMs + untilMs - monotonicMs })
    }
    const pins = new Map<string, HeldPin[]>()
    const longestMs = nowMs + this.#limits.pin_reservation_secs * 1000
    for (const { key, value } of await keyValue.list(PIN_KEYS, PINS_SHOWN_MAX)) {
      const { holder, untilMs } = value as Reservation
      if (untilMs <= nowMs || untilMs > longestMs) continue
      const [, device = '', pin = ''] = /^([^/]*)\/(.*)$/.exec(key.slice(PIN_KEYS.length)) ?? []
      pins.set(device, [...(pins.get(device) ?? []), { pin, client: holder, untilMs }])
    }
    return { holders, pins }
  }

  #leaseOf(device: string, holder: string): Lease {
    const now = this.#host.clock.monotonicMs()
    for (const [name, { queue, untilMs }] of this.#leases) if (queue.isIdle && untilMs <= now) this.#leases.delete(name)
    const held = this.#leases.get(device)
    if (held && held.holder !== holder) throw inUse(device, held, now)
    if (held) return held
    if (this.#leases.size >= DEVICES_MAX) throw new AppError('unavailable', 'Too many devices are in use', { retryAfterSecs: 1 })
    const lease = { holder, untilMs: 0, queue: new SerialQueue({ name: device, tasksMax: TRANSACTIONS_MAX }) }
    this.#leases.set(device, lease)
    return lease
  }

  async #transact<Result>(lease: Lease, use: DeviceUse, work: () => Promise<Result>): Promise<Result> {
    if (use.context.signal.aborted) throw new AppError('aborted', 'The call was aborted before it ran')
    if (use.pins) await this.#reserve(use)
    if (use.write) await this.#record(use)
    try {
      return await work()
    } finally {
      lease.untilMs = this.#host.clock.monotonicMs() + this.#limits.lease_secs * 1000
    }
  }

  /** Reserves all the pins or, when another client of this or another process holds one of them, none. */
  async #reserve({ device, context, pins = [] }: DeviceUse): Promise<void> {
    const { lease_secs, pin_reservation_secs } = this.#limits
    if (pin_reservation_secs === 0) return
    const now = this.#host.clock.nowMs()
    const holder = holderOf(context)
    const longestMs = now + pin_reservation_secs * 1000
    const untilMs = isCommandLine(holder) ? Math.min(longestMs, now + lease_secs * 1000) : longestMs
    const keys = pins.map((pin) => `${PIN_KEYS}${device}/${pin}`)
    const before: unknown[] = []
    for (const [index, key] of keys.entries()) {
      before.push(await this.#host.keyValue.get(key))
      const held = before.at(-1) as Reservation | undefined
      // A reservation beyond the longest possible one was made before the wall clock was set back: ignore it.
      if (held && held.holder !== holder && held.untilMs > now && held.untilMs <= longestMs)
        throw pinInUse(device, pins[index], secsUntil(held.untilMs, now))
    }
    const reservation: Reservation = { holder, untilMs }
    for (const [index, key] of keys.entries()) {
      if (await this.#host.keyValue.swap(key, before[index], reservation)) continue
      // Another process has reserved this pin since it was read.
      for (const [earlier, taken] of keys.slice(0, index).entries()) await this.#host.keyValue.swap(taken, reservation, before[earlier])
      throw pinInUse(device, pins[index], 1)
    }
  }

  async #record({ device, tool, context, write, pins }: DeviceUse): Promise<void> {
    const audit = this.#host.service('audit')
    if (!audit) throw new AppError('unavailable', 'This build has no audit log, so nothing may be written to a device')
    const { turn, approvedBy } = context
    await audit({
      by: approvedBy ?? `turn:${turn}`,
      detail: { device, tool, client: holderOf(context), turn, ...(pins && { pins }), ...write },
    })
  }
}

/** A command line ends with its call and never returns, so its pin reservations last only as long as its lease. */
const isCommandLine = (holder: string): boolean => holder === 'cli' || holder.startsWith('cli:')

/** An authenticated caller keeps its devices across connections and restarts; an anonymous client is its connection. */
const holderOf = ({ caller, client }: ToolContext): string => caller ?? client

function inUse(device: string, { queue, untilMs }: Lease, now: number): AppError {
  const retryAfterSecs = queue.isIdle ? secsUntil(untilMs, now) : 1
  return new AppError('conflict', `${device} is in use by another client`, { retryAfterSecs })
}

const pinInUse = (device: string, pin: number | string | undefined, retryAfterSecs: number): AppError =>
  new AppError('conflict', `Pin ${pin} of ${device} is in use by another client`, { retryAfterSecs })

const secsUntil = (untilMs: number, now: number): number => Math.max(1, Math.ceil((untilMs - now) / 1000))
