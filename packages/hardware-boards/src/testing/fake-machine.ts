/** A machine for tests: ports that are plugged in and out by hand, each with a fake board behind it. */
import { AppError } from '@sluice/sdk'
import type { Port, UsbIdentity } from '../devices.ts'
import type { Machine } from '../registry/machine.ts'
import type { SeenPort } from '../registry/usb.ts'
import { memoryPort } from '../transports/memory-port.ts'
import { type FakeBoard, type FakeBoardOptions, fakeBoard } from './fake-board.ts'

export interface Plugged {
  readonly path: string
  /** `vvvv:pppp`; absent: no USB device. */
  readonly usb?: string
  readonly serialNumber?: string
  readonly location?: string
  readonly options?: FakeBoardOptions
}

export interface FakeMachine {
  /** Its members may be replaced. */
  readonly machine: { -readonly [Member in keyof Machine]: Machine[Member] }
  /** Plugs in and tells the watcher. */
  plug(...devices: Plugged[]): void
  /** Takes out and tells the watcher; open ports are cut. */
  unplug(path: string): void
  /** The board at a path, as of its last open. */
  board(path: string): FakeBoard
  /** Paths in the order they were opened. */
  readonly opened: readonly string[]
  /** How often it was looked. */
  readonly looks: () => number
}

export function fakeMachine(...plugged: Plugged[]): FakeMachine {
  const there = new Map(plugged.map((device) => [device.path, device]))
  const ports = new Map<string, { port: Port; board: FakeBoard }>()
  const opened: string[] = []
  const watchers = new Set<() => void>()
  let looks = 0
  const tell = (): void => {
    for (const watcher of watchers) watcher()
  }
  return {
    opened,
    looks: () => looks,
    plug(...devices) {
      for (const device of devices) there.set(device.path, device)
      tell()
    },
    unplug(path) {
      there.delete(path)
      void ports.get(path)?.port.close()
      tell()
    },
    board(path) {
      const found = ports.get(path)
      if (!found) throw new Error(`${path} was never opened`)
      return found.board
    },
    machine: {
      async look() {
        looks++
        const seen = [...there.values()].map(seenPort)
        return { ports: seen, usb: seen.flatMap(({ usb }) => (usb ? [{ vendor: usb.vendor, product: usb.product, name: 'Thing' }] : [])) }
      },
      watch: (onChange, signal) =>
        new Promise((resolve) => {
          watchers.add(onChange)
          signal.addEventListener('abort', () => resolve(), { once: true })
        }),
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
