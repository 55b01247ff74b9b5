/** The boards of this machine: looked for, named, watched, and each with its line. */
import { checkDevicePath } from '@sluice/hardware'
import { AppError, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Device, Devices, Port, UsbSeen } from '../devices.ts'
import { createSignals } from '../signals.ts'
import type { BoardLine } from '../transports/board-line.ts'
import { createLine } from '../transports/create-line.ts'
import { openSerialPort } from '../transports/serial-port.ts'
import { type Aliases, loadAliases } from './aliases.ts'
import { askFirmware } from './ask-firmware.ts'
import { type Entry, entriesOf } from './entries.ts'
import { type FoundBoard, findBoards, mayBeAsked } from './find-boards.ts'
import { lookAtPorts } from './look-at-ports.ts'
import { lookAtSysfs } from './look-at-sysfs.ts'
import { pickDevice } from './pick.ts'
import type { Look, Seen, SeenPort } from './usb.ts'
import { watchPorts } from './watch-ports.ts'

/** Of one look, all ports asked. */
export const DISCOVERY_MS_MAX = 2000
/** Kept free of it for naming what was found. */
const ASKING_MS_MAX = 1500
/** Devices that went away are forgotten beyond it. */
const DEVICES_MAX = 128
const DEFAULT_BAUD = 115_200
const NOTHING: Seen = { ports: [], usb: [] }
/** After a start whose first look failed, as on a machine that is busy starting itself; twice as long each time. */
const LOOK_AGAIN_MS = 5000
const LOOKS_AGAIN_MAX = 4
/** While somebody waits for a board that was reset. */
const COME_BACK_LOOK_MS = 250
/** A board that was told to restart is gone by then, or restarts without leaving. */
const GOING_MS_MAX = 1500

/** What a test puts in the place of this machine. */
export interface Machine {
  readonly look: Look
  readonly watch: (onChange: () => void, signal: AbortSignal) => Promise<void>
  readonly check: (path: string) => Promise<void>
  readonly open: (path: string, baud: number, signal: AbortSignal) => Promise<Port>
}

export interface Registry extends Devices {
  /** The line to a device's pins. */
  line(alias: string): BoardLine
  /** Looks, and goes on looking when devices come and go, until `close`. */
  start(): void
  /** Aliases whose signals are wanted; others may be closed when idle. */
  listenTo(aliases: ReadonlySet<string>): void
  /** Idempotent. */
  close(): Promise<void>
}

interface Held {
  device: Device
  location: string | null
  line: BoardLine | undefined
}

export const thisMachine = (host: Host): Machine => ({
  look: process.platform === 'linux' ? lookAtSysfs() : lookAtPorts,
  watch: (onChange, signal) => watchPorts(host.clock, onChange, signal),
  check: (path) => checkDevicePath(path, 'serial'),
  open: (path, baud, signal) => openSerialPort({ path, baud, clock: host.clock }, signal),
})

export function createRegistry(host: Host, config: PeripheralsConfig, given: Partial<Machine> = {}): Registry {
  const machine: Machine = { ...thisMachine(host), ...given }
  const entries = config.enabled ? entriesOf(config.boards) : []
  const held = new Map<string, Held>()
  /** False: nothing that is configured is plugged in. */
  const looksAround = config.discover || entries.some(({ transport }) => transport === 'serial')
  const closing = new AbortController()
  /** What ports said that were asked; undefined: nothing. */
  const asked = new Map<string, string | undefined>()
  /** Places where a device is waited for, which may come back as another. */
  const awaited = new Map<string, string>()
  let aliases: Promise<Aliases> | undefined
  let seen: readonly UsbSeen[] = []
  let looking: Promise<void> | undefined
  let first: Promise<void> | undefined
  let looked = false
  let hasSeen = false
  let wanted: ReadonlySet<string> = new Set()

  const all = (): readonly Device[] =>
    [...held.values()]
      .map(({ device }) => (device.transport === 'native' ? { ...device, connected: host.service('nativeGpio') !== undefined } : device))
      .sort((a, b) => Number(b.connected) - Number(a.connected) || a.alias.localeCompare(b.alias, 'en', { numeric: true }))

  const put = async (device: Device, location: string | null = null): Promise<void> => {
    const before = held.get(device.alias)
    if (before) {
      const moved =
        before.device.path !== device.path || before.device.baud !== device.baud || (before.device.connected && !device.connected)
      const came = !before.device.connected && device.connected
      before.device = device
      before.location = location ?? before.location
      if (moved) await before.line?.drop()
      if (came) host.log.info('a board is connected again', { device: device.alias, path: device.path ?? device.transport })
    } else {
      forgetOne()
      held.set(device.alias, { device, location, line: undefined })
      if (device.connected) host.log.info('a board is connected', { device: device.alias, path: device.path ?? device.transport })
    }
    listen(device.alias)
  }
  /** Makes room, by a device that is not here and that nobody has configured. */
  const forgetOne = (): void => {
    if (held.size < DEVICES_MAX) return
    const gone = [...held.values()].find(({ device }) => !device.connected)
    if (!gone) return
    held.delete(gone.device.alias)
    void gone.line?.close()
  }
  const listen = (alias: string): void => {
    const entry = held.get(alias)
    if (!entry || (!entry.line && !wanted.has(alias))) return
    line(alias).listen(wanted.has(alias) && entry.device.connected)
  }

  const line = (alias: string): BoardLine => {
    const entry = held.get(alias)
    if (!entry) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
    entry.line ??= createLine({
      device: () => entry.device,
      host,
      openSerial: async (path, baud, signal) => {
        await machine.check(path)
        return machine.open(path, baud, signal)
      },
      onSignal: createSignals(host, alias),
    })
    return entry.line
  }

  /** Ports that are no USB device's, each asked once while it is there. Resolves to whether one was. */
  const ask = async (ports: readonly SeenPort[], signal: AbortSignal): Promise<boolean> => {
    const there = new Set(ports.map(({ path }) => path))
    for (const path of asked.keys()) if (!there.has(path)) asked.delete(path)
    const silent = ports.filter((port) => mayBeAsked(port) && !asked.has(port.path) && !entries.some(({ path }) => path === port.path))
    await Promise.all(
      silent.map(async ({ path }) => {
        const open = async () => {
          await machine.check(path)
          return machine.open(path, DEFAULT_BAUD, signal)
        }
        asked.set(path, await untilAborted(askFirmware(open, host.clock, signal), signal))
      }),
    )
    return silent.length > 0
  }

  /** What is plugged in and what the configuration gives a port that no look shows. */
  const portsOf = async (now: Seen): Promise<readonly SeenPort[]> => {
    const shown = config.discover ? now.ports : now.ports.filter(({ path }) => entries.some((entry) => entry.path === path))
    const paths = entries.filter(({ transport }) => transport === 'serial').map(({ path }) => path)
    const hidden = [...new Set(paths)].filter((path) => path !== null && !shown.some((port) => port.path === path))
    const there = await Promise.all(
      hidden.map(async (path) =>
        path === null
          ? []
          : machine.check(path).then(
              () => [{ path, usb: null, location: null }],
              () => [],
            ),
      ),
    )
    return [...shown, ...there.flat()]
  }

  const aliasOf = async (names: Aliases, found: FoundBoard, entry: Entry | undefined): Promise<string> => {
    const waiting = found.location === null ? undefined : awaited.get(found.location)
    // An entry that was empty until now is this device's from now on, as is a name somebody waits for at this very place.
    const adopted = names.of(found.identity) ? undefined : (waiting ?? (entry && names.of(entry.identity)?.alias))
    if (adopted === undefined) return names.bind(found.identity, found.family, found.path)
    await names.rebind(adopted, found.identity, found.path)
    return adopted
  }

  const take = async (found: readonly FoundBoard[]): Promise<void> => {
    aliases ??= loadAliases(host.keyValue, host.clock.nowMs, (alias) => held.get(alias)?.device.connected === true)
    const names = await aliases
    const free = new Set(entries)
    const connected = new Set<string>()
    for (const board of found) {
      const entry = entryFor(board, free)
      if (entry) free.delete(entry)
      const alias = await aliasOf(names, board, entry)
      connected.add(alias)
      const { path, usb } = board
      await put(
        { alias, board: board.board, transport: 'serial', path, baud: entry?.baud ?? DEFAULT_BAUD, usb, connected: true },
        board.location,
      )
    }
    for (const entry of free) {
      const { board, transport, path, baud } = entry
      const before = transport === 'serial' && path !== null ? names.at(path)?.alias : undefined
      const alias = before !== undefined && !connected.has(before) ? before : await names.bind(entry.identity, entry.family, path)
      if (transport !== 'serial') connected.add(alias)
      await put({ alias, board, transport, path, baud, usb: held.get(alias)?.device.usb ?? null, connected: transport !== 'serial' })
    }
    for (const { device } of held.values()) {
      if (!device.connected || connected.has(device.alias)) continue
      host.log.info('a board was unplugged', { device: device.alias })
      await put({ ...device, connected: false })
    }
  }

  const lookOnce = async (): Promise<void> => {
    const over = new AbortController()
    const signal = AbortSignal.any([closing.signal, over.signal])
    void host.clock.sleep(ASKING_MS_MAX, signal).then(() => over.abort())
    try {
      const now = looksAround ? await untilAborted(machine.look(), signal) : NOTHING
      if (!now) throw new AppError('upstream_timeout', 'USB does not answer')
      seen = now.usb
      hasSeen = true
      const ports = await portsOf(now)
      // What USB names is there before any port has been asked: asking may take all the time there is.
      if (!closing.signal.aborted) await take(findBoards(ports, namesOf(entries, asked)))
      const hasAsked = config.discover && (await ask(ports, signal))
      if (hasAsked && !closing.signal.aborted) await take(findBoards(ports, namesOf(entries, asked)))
    } catch (error) {
      if (!closing.signal.aborted) host.log.warn('boards could not be looked for', { error })
    } finally {
      over.abort()
    }
  }
  const look = (): Promise<void> => {
    if (closing.signal.aborted) return Promise.resolve()
    looking ??= lookOnce().finally(() => {
      looking = undefined
    })
    return looking
  }
  /** Until it is done, or the time for a look is over. */
  const inTime = async (done: Promise<void>, signal: AbortSignal): Promise<void> => {
    const over = new AbortController()
    const late = host.clock.sleep(DISCOVERY_MS_MAX, AbortSignal.any([signal, over.signal]))
    await Promise.race([done, late]).finally(() => over.abort())
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
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
      await host.clock.sleep(LOOK_AGAIN_MS * 2 ** again, closing.signal)
      if (!hasSeen) await look()
    }
  }
  /** A look that began after now. */
  const lookAnew = (signal: AbortSignal): Promise<void> => inTime((looking ?? Promise.resolve()).then(look), signal)

  const connectedNow = (alias: string): Device | undefined => {
    const device = held.get(alias)?.device
    return device?.connected ? device : undefined
  }

  return {
    all,
    seen: () => seen,
    ready: async (signal) => (looked ? undefined : inTime(firstLook(), signal)),
    async discover(signal) {
      await lookAnew(signal)
      return all()
    },
    pick: (alias, fits = () => true) => pickDevice(all(), seen, alias, fits),
    line,
    withPort: async (alias, signal, work) => line(alias).withPort(signal, work),
    async comeBack(alias, timeoutMs, signal) {
      const entry = held.get(alias)
      if (!entry) throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}`)
      const startMs = host.clock.monotonicMs()
      const { location } = entry
      if (location !== null) awaited.set(location, alias)
      try {
        let wasGone = !entry.device.connected
        for (;;) {
          await lookAnew(signal)
          const passedMs = host.clock.monotonicMs() - startMs
          const device = connectedNow(alias)
          wasGone ||= !device
          if (device && (wasGone || passedMs >= GOING_MS_MAX)) return device
          if (passedMs >= timeoutMs) {
            if (device) return device
            throw new AppError('upstream_timeout', `${alias} did not come back within ${Math.round(timeoutMs / 1000)} s`)
          }
          await host.clock.sleep(COME_BACK_LOOK_MS, signal)
        }
      } finally {
        if (location !== null) awaited.delete(location)
      }
    },
    start() {
      void lookUntilSeen()
      if (!config.discover) return
      void machine
        .watch(() => void lookAnew(closing.signal).catch(() => undefined), closing.signal)
        .catch((error: unknown) => host.log.warn('boards are not noticed as they come and go', { error }))
    },
    listenTo(next) {
      wanted = next
      for (const alias of held.keys()) listen(alias)
    },
    async close() {
      closing.abort()
      await looking
      await Promise.all([...held.values()].map(({ line }) => line?.close()))
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

/** What ports are by the configuration and by their own word. */
function namesOf(entries: readonly Entry[], asked: ReadonlyMap<string, string | undefined>): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const [path, name] of asked) if (name !== undefined) names.set(path, name)
  for (const { transport, path, name } of entries) if (transport === 'serial' && path !== null) names.set(path, name)
  return names
}

const untilAborted = <Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    work.then(resolve, reject)
  })
