/** Who may use a device: one client at a time, one transaction after the other; pins stay with who set them; writes are on record. */
import { AppError, type Host, type ToolContext } from '@sluice/sdk'

/** Transactions of one client that wait for each other. */
const WAITING_MAX = 16
const DEVICES_MAX = 256

export interface DeviceLimits {
  readonly lease_secs: number
  readonly pin_reservation_secs: number
}

export interface DeviceUse {
  /** The alias. */
  readonly device: string
  readonly tool: string
  readonly context: ToolContext
  /** What is written, for the audit log: JSON, no secret. Absent: it only reads. */
  readonly write?: Readonly<Record<string, unknown>>
  /** Written pins, which are then this client's. */
  readonly pins?: readonly (number | string)[]
}

export interface DeviceGuard {
  /**
   * Runs one transaction, after those of the same client that came before. Throws `conflict` while the device, or one of
   * the pins, is another client's, `aborted` when the call is aborted while it waits, and `unavailable` when too many wait
   * or a write cannot be recorded: then nothing ran. Once it runs, `work` itself has to heed the abort.
   */
  use<Result>(use: DeviceUse, work: () => Promise<Result>): Promise<Result>
}

interface Lease {
  readonly holder: string
  /** From the end of the last call that ran; a call that was refused holds nothing. Of the monotonic clock. */
  untilMs: number
  /** Under way and waiting. */
  pending: number
  last: Promise<unknown>
}

interface Reservation {
  readonly holder: string
  /** Of the time of day, which goes on over a restart. */
  readonly untilMs: number
}

/** Pins outlive a restart (`host.keyValue`), leases do not. */
export function createDeviceGuard(host: Host, { lease_secs, pin_reservation_secs }: DeviceLimits): DeviceGuard {
  const leases = new Map<string, Lease>()

  const leaseOf = (device: string, holder: string): Lease => {
    const now = host.clock.monotonicMs()
    for (const [name, { pending, untilMs }] of leases) if (pending === 0 && untilMs <= now) leases.delete(name)
    const held = leases.get(device)
    if (held && held.holder !== holder) throw inUse(device, held, now)
    if (held && held.pending >= WAITING_MAX) throw new AppError('unavailable', `Too many calls wait for ${device}`, { retryAfterSecs: 1 })
    if (!held && leases.size >= DEVICES_MAX) throw new AppError('unavailable', 'Too many devices are in use', { retryAfterSecs: 1 })
    const lease = held ?? { holder, untilMs: 0, pending: 0, last: Promise.resolve() }
    leases.set(device, lease)
    return lease
  }

  /** All or none: a pin of another client leaves the others as they were. */
  const reserve = async ({ device, context, pins = [] }: DeviceUse): Promise<void> => {
    if (pin_reservation_secs === 0) return
    const now = host.clock.nowMs()
    const holder = holderOf(context)
    const longestMs = now + pin_reservation_secs * 1000
    const untilMs = comesBack(holder) ? longestMs : Math.min(longestMs, now + lease_secs * 1000)
    const keys = pins.map((pin) => `pin:${device}/${pin}`)
    for (const [index, key] of keys.entries()) {
      const held = (await host.keyValue.get(key)) as Reservation | undefined
      // One that ends later than any can is of before the clock was set back
      if (held && held.holder !== holder && held.untilMs > now && held.untilMs <= longestMs)
        throw new AppError('conflict', `Pin ${pins[index]} of ${device} is in use by another client`, {
          retryAfterSecs: secsUntil(held.untilMs, now),
        })
    }
    const reservation: Reservation = { holder, untilMs }
    for (const key of keys) await host.keyValue.set(key, reservation)
  }

  const record = async ({ device, tool, context, write, pins }: DeviceUse): Promise<void> => {
    const audit = host.service('audit')
    if (!audit) throw new AppError('unavailable', 'There is no audit log to write this to')
    const { turn, approvedBy } = context
    await audit({
      by: approvedBy ?? `turn:${turn}`,
      detail: { device, tool, client: holderOf(context), turn, ...(pins && { pins }), ...write },
    })
  }

  const transact = async <Result>(lease: Lease, use: DeviceUse, work: () => Promise<Result>): Promise<Result> => {
    if (use.context.signal.aborted) throw aborted()
    if (use.pins) await reserve(use)
    if (use.write) await record(use)
    try {
      return await work()
    } finally {
      lease.untilMs = host.clock.monotonicMs() + lease_secs * 1000
    }
  }

  return {
    async use(use, work) {
      const lease = leaseOf(use.device, holderOf(use.context))
      lease.pending++
      let hasBegun = false
      const result = lease.last.then(() => {
        hasBegun = true
        return transact(lease, use, work)
      })
      const settle = () => void lease.pending--
      lease.last = result.then(settle, settle)
      return unlessAbortedWaiting(result, use.context.signal, () => hasBegun)
    },
  }
}

/** A command line ends with its call: it holds a pin no longer than the device. */
const comesBack = (holder: string): boolean => holder !== 'cli' && !holder.startsWith('cli:')

/** Who comes back on another connection, or after a restart, still has what was theirs. */
const holderOf = ({ caller, client }: ToolContext): string => caller ?? client

/** Its turn still comes in the queue, and then nothing runs. */
const unlessAbortedWaiting = <Result>(result: Promise<Result>, signal: AbortSignal, hasBegun: () => boolean): Promise<Result> =>
  new Promise((resolve, reject) => {
    const onAbort = () => {
      if (!hasBegun()) reject(aborted())
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    void result.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })

const aborted = () => new AppError('aborted', 'The call was aborted before it ran')

function inUse(device: string, { pending, untilMs }: Lease, now: number): AppError {
  const retryAfterSecs = pending > 0 ? 1 : secsUntil(untilMs, now)
  return new AppError('conflict', `${device} is in use by another client`, { retryAfterSecs })
}

const secsUntil = (untilMs: number, now: number): number => Math.max(1, Math.ceil((untilMs - now) / 1000))
