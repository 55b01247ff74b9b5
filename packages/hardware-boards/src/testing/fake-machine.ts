/** A fake machine whose ports are plugged in and out by the test, each with a fake board behind it. */
import { AppError } from '@sluice/sdk'
import type { Port, UsbIdentity } from '../devices.ts'
import type { Machine } from '../registry/machine.ts'
import type { SeenPort } from '../registry/usb.ts'
import { memoryPort } from '../transports/memory-port.ts'
import { type FakeBoard, type FakeBoardOptions, fakeBoard } from './fake-board.ts'

export interface Plugged {
  readonly path: string
  /** Vendor and product as `vvvv:pppp`; the port belongs to no USB device unless given. */
  readonly usb?: string
  readonly serialNumber?: string
  readonly location?: string
  readonly options?: FakeBoardOptions
}

export interface FakeMachine {
  /** Tests may replace its members. */
  readonly machine: { -readonly [Member in keyof Machine]: Machine[Member] }
  /** Plugs devices in and notifies the watchers. */
  plug(...devices: Plugged[]): void
  /** Lets a name below /dev/serial lead to a port from now on. */
  link(name: string, path: string): void
  /** Unplugs a device, closes its open port and notifies the watchers. */
  unplug(path: string): void
  /** Returns the board behind the port that was opened last at a path. */
  board(path: string): FakeBoard
  /** The paths in the order in which they were opened. */
  readonly opened: readonly string[]
  /** Returns the number of scans. */
  readonly scans: () => number
}

export function fakeMachine(...plugged: Plugged[]): FakeMachine {
  const there = new Map(plugged.map((device) => [device.path, device]))
  const ports = new Map<string, { port: Port; board: FakeBoard }>()
  const opened: string[] = []
  const links = new Map<string, string>()
  const watchers = new Set<() => void>()
  let scans = 0
  const notify = (): void => {
    for (const watcher of watchers) watcher()
  }
  return {
    opened,
    scans: () => scans,
    plug(...devices) {
      for (const device of devices) there.set(device.path, device)
      notify()
    },
    link: (name, path) => void links.set(name, path),
    unplug(path) {
      there.delete(path)
      void ports.get(path)?.port.close()
      notify()
    },
    board(path) {
      const found = ports.get(path)
      if (!found) throw new Error(`${path} was never opened`)
      return found.board
    },
    machine: {
      async scan() {
        scans++
        const seen = [...there.values()].map(seenPort)
        return { ports: seen, usb: seen.flatMap(({ usb }) => (usb ? [{ vendor: usb.vendor, product: usb.product, name: 'Thing' }] : [])) }
      },
      watch: (onChange, signal) =>
        new Promise((resolve) => {
          watchers.add(onChange)
          signal.addEventListener('abort', () => resolve(), { once: true })
        }),
      scannedPath: async (path) => links.get(path) ?? path,
      async check(path) {
        if (!there.has(path)) throw new AppError('not_found', `There is no ${path}`)
      },
      async open(path) {
        const device = there.get(path)
        if (!device) throw new AppError('unavailable', `There is no ${path}`)
        opened.push(path)
        const { near, far } = memoryPort()
        const before = ports.get(path)
        const board = fakeBoard(far, device.options)
        for (const [pin, level] of before?.board.pins ?? []) board.pins.set(pin, level)
        ports.set(path, { port: far, board })
        return near
      },
    },
  }
}

function seenPort({ path, usb, serialNumber, location }: Plugged): SeenPort {
  const [vendor = '', product = ''] = usb?.split(':') ?? []
  const identity: UsbIdentity = { vendor, product, serialNumber: serialNumber ?? null, manufacturer: null }
  return { path, usb: usb ? identity : null, location: location ?? null }
}
