/** The boards of this machine: looked for, named, watched, and each with its line. */

import { signalScope } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Devices } from '../devices.ts'
import type { BoardLine } from '../transports/board-line.ts'
import { entriesOf } from './entries.ts'
import { createHeldDevices, type WantedSignals } from './held-devices.ts'
import { type Machine, thisMachine } from './machine.ts'
import { createNameBoards } from './name-boards.ts'
import { pickDevice } from './pick.ts'
import { createSeenBoards } from './seen-boards.ts'

/** The daemon has other things to do while it starts; who needs a board sooner has it looked for at once. */
export const START_AFTER_MS = 250
/** Of one look, all ports asked. */
export const DISCOVERY_MS_MAX = 2000
/** Kept free of it for naming what was found. */
const LOOKING_MS_MAX = 1500
/** After a start whose first look failed, as on a machine that is busy starting itself; twice as long each time. */
const LOOK_AGAIN_MS = 5000
const LOOKS_AGAIN_MAX = 4
/** While somebody waits for a board that was reset. */
const COME_BACK_LOOK_MS = 250
/** A board that was told to restart is gone by then, or restarts without leaving. */
const GOING_MS_MAX = 1500

export interface Registry extends Devices {
  /** The line to a device's pins. */
  line(alias: string): BoardLine
  /** Looks, and goes on looking when devices come and go, until `close`. */
  start(): void
  /** The signals that are wanted; the lines of other devices are closed when idle. */
  listenTo(signals: WantedSignals): void
  /** Idempotent. */
  close(): Promise<void>
}

export function createRegistry(host: Host, config: PeripheralsConfig, given: Partial<Machine> = {}): Registry {
  const { clock, log } = host
  const machine: Machine = { ...thisMachine(host), ...given }
  const entries = config.enabled ? entriesOf(config.boards) : []
  const held = createHeldDevices(host, machine)
  const names = createNameBoards(host, entries, held)
  const boards = createSeenBoards(host, config, entries, machine)
  const closing = new AbortController()
  let looking: Promise<void> | undefined
  let first: Promise<void> | undefined
  let looked = false
  let hasSeen = false

  const lookOnce = async (): Promise<void> => {
    using limit = signalScope([closing.signal], LOOKING_MS_MAX, clock)
    try {
      await boards.look(async (found) => {
        hasSeen = true
        if (!closing.signal.aborted) await names.take(found)
      }, limit.signal)
    } catch (error) {
      if (!closing.signal.aborted) log.warn('boards could not be looked for', { error })
    }
  }
  const look = (): Promise<void> => {
    if (closing.signal.aborted) return Promise.resolve()
    looking ??= lookOnce().finally(() => {
      looking = undefined
    })
    return looking
  }
  const firstLook = (): Promise<void> => {
    first ??= look().then(() => {
      looked = true
    })
    return first
  }
  const lookUntilSeen = async (): Promise<void> => {
    await firstLook()
    for (let again = 0; again < LOOKS_AGAIN_MAX && !hasSeen && !closing.signal.aborted; again++) {
      await clock.sleep(LOOK_AGAIN_MS * 2 ** again, closing.signal)
      if (!hasSeen) await look()
    }
  }
  const watch = (): Promise<void> =>
    machine
      .watch(() => void lookAnew(closing.signal).catch(() => undefined), closing.signal)
      .catch((error: unknown) => log.warn('boards are not noticed as they come and go', { error }))
  /** Until it is done, or the time for a look is over. Throws `aborted`. */
  const inTime = async (done: Promise<void>, signal: AbortSignal): Promise<void> => {
    using wait = signalScope([signal])
    await Promise.race([done, clock.sleep(DISCOVERY_MS_MAX, wait.signal)])
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
  }
  /** A look that began after now. */
  const lookAnew = (signal: AbortSignal): Promise<void> => inTime((looking ?? Promise.resolve()).then(look), signal)

  return {
    all: held.all,
    seen: () => boards.usb,
    ready: async (signal) => (looked ? undefined : inTime(firstLook(), signal)),
    async discover(signal) {
      await lookAnew(signal)
      return held.all()
    },
    pick: (alias, fits = () => true) => pickDevice(held.all(), boards.usb, alias, fits),
    line: held.line,
    withPort: async (alias, signal, work) => held.line(alias).withPort(signal, work),
    async comeBack(alias, timeoutMs, signal) {
      let wasGone = held.get(alias)?.connected !== true
      const startMs = clock.monotonicMs()
      const stopWaiting = names.await(alias)
      try {
        for (;;) {
          await lookAnew(signal)
          const device = held.get(alias)
          if (!device) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
          wasGone ||= !device.connected
          const passedMs = clock.monotonicMs() - startMs
          if (device.connected && (wasGone || passedMs >= Math.min(GOING_MS_MAX, timeoutMs))) return device
          if (passedMs >= timeoutMs)
            throw new AppError('upstream_timeout', `${alias} did not come back within ${Math.round(timeoutMs / 1000)} s`)
          await clock.sleep(COME_BACK_LOOK_MS, signal)
        }
      } finally {
        stopWaiting()
      }
    },
    start() {
      void clock.sleep(START_AFTER_MS, closing.signal).then(() => {
        if (closing.signal.aborted) return
        void lookUntilSeen()
        if (config.discover) void watch()
      })
    },
    listenTo: held.listenTo,
    async close() {
      closing.abort()
      await looking
      await held.close()
    },
  }
}
