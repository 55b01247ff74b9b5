/** One look at this machine: what USB shows, which ports the configuration names, and who has to be asked what it is. */
import { AppError, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { UsbSeen } from '../devices.ts'
import { askFirmware } from './ask-firmware.ts'
import type { Entry } from './entries.ts'
import { type FoundBoard, findBoards, mayBeAsked } from './find-boards.ts'
import { type Machine, openChecked } from './machine.ts'
import { DEFAULT_BAUD } from './name-boards.ts'
import { untilAborted } from './until-aborted.ts'
import type { Seen, SeenPort } from './usb.ts'

export interface SeenBoards {
  /** Of the last look. */
  readonly usb: readonly UsbSeen[]
  /** Calls back with what is known, at once and again when ports have been asked. Ends soon after `signal` aborts. */
  look(take: (found: readonly FoundBoard[]) => Promise<void>, signal: AbortSignal): Promise<void>
}

const NOTHING: Seen = { ports: [], usb: [] }

export function createSeenBoards(host: Host, config: PeripheralsConfig, entries: readonly Entry[], machine: Machine): SeenBoards {
  const paths = new Set(entries.flatMap(({ transport, path }) => (transport === 'serial' && path !== null ? [path] : [])))
  /** False: nothing that is configured is plugged in. */
  const looksAround = config.discover || entries.some(({ transport }) => transport === 'serial')
  /** What ports said that were asked; undefined: nothing. */
  const asked = new Map<string, string | undefined>()
  let usb: readonly UsbSeen[] = []

  /** Ports that are no USB device's, each asked once while it is there. Resolves to whether one was. */
  const ask = async (ports: readonly SeenPort[], signal: AbortSignal): Promise<boolean> => {
    const there = new Set(ports.map(({ path }) => path))
    for (const path of asked.keys()) if (!there.has(path)) asked.delete(path)
    const silent = ports.filter((port) => mayBeAsked(port) && !asked.has(port.path) && !paths.has(port.path))
    await Promise.all(
      silent.map(async ({ path }) => {
        const open = () => openChecked(machine, path, DEFAULT_BAUD, signal)
        asked.set(path, await untilAborted(askFirmware(open, host.clock, signal), signal))
      }),
    )
    return silent.length > 0
  }

  /** What is plugged in, and what the configuration gives a port that no look shows. */
  const portsOf = async (ports: readonly SeenPort[]): Promise<readonly SeenPort[]> => {
    const boards = [...entries].some(({ transport, path }) => transport === 'serial' && path === null)
    const shown = config.discover || boards ? ports : ports.filter(({ path }) => paths.has(path))
    const hidden = [...paths].filter((path) => !shown.some((port) => port.path === path))
    const there = await Promise.all(
      hidden.map(async (path) => ((await isThere(machine, path)) ? [{ path, usb: null, location: null }] : [])),
    )
    return [...shown, ...there.flat()]
  }

  /** What ports are by the configuration and by their own word. */
  const names = (): ReadonlyMap<string, string> => {
    const known = new Map<string, string>()
    for (const [path, name] of asked) if (name !== undefined) known.set(path, name)
    for (const { transport, path, name } of entries) if (transport === 'serial' && path !== null) known.set(path, name)
    return known
  }

  return {
    get usb() {
      return usb
    },
    async look(take, signal) {
      const seen = looksAround ? await untilAborted(machine.look(), signal) : NOTHING
      if (!seen) throw new AppError('upstream_timeout', 'USB does not answer')
      usb = seen.usb
      const ports = await portsOf(seen.ports)
      // What USB names is there before any port has been asked: asking may take all the time there is.
      await take(findBoards(ports, names()))
      if (config.discover && (await ask(ports, signal))) await take(findBoards(ports, names()))
    },
  }
}

const isThere = (machine: Machine, path: string): Promise<boolean> =>
  machine.check(path).then(
    () => true,
    () => false,
  )
