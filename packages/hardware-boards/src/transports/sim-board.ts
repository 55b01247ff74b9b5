/**
 * A simulated board, for trying tools and procedures. It speaks the line protocol over ports in memory and its pins keep their
 * levels. Pin 3 is wired to pin 2, and each write of 1 to pin 12 presses its button, which sends the signal `button`. A watched
 * pin sends its changes as signals and refuses writes.
 */
import type { Board } from '@sluice/hardware'
import { type Members, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import type { Port } from '../devices.ts'
import { createLineDecoder } from '../protocol/line-decoder.ts'
import { memoryPort } from './memory-port.ts'

const PINS = Array.from({ length: 30 }, (_, pin) => pin)
/** The pins that read the level of another pin. */
const WIRED: Readonly<Record<number, number>> = { 3: 2 }
const BUTTON = 12

/** Its pins keep their levels when a port is closed and opened again, as on a real board. */
export class SimBoard {
  readonly #name: string
  readonly #board: Board | undefined
  readonly #levels = new Map<number, 0 | 1>()
  readonly #watched = new Set<number>()
  /** One function for each open port, which sends a line to it. */
  readonly #senders = new Set<(line: object) => void>()

  constructor(name: string, board: Board | undefined) {
    this.#name = name
    this.#board = board
  }

  open(): Port {
    const { near, far } = memoryPort()
    const send = (line: object): void => void far.write(Buffer.from(`${JSON.stringify(line)}\n`))
    this.#senders.add(send)
    far.onClose(() => void this.#senders.delete(send))
    far.onData(
      createLineDecoder((line) => {
        if (line === '') return
        const { id, cmd, args } = members(parsedOrUndefined(line))
        try {
          send({ id, ok: true, result: this.#run(cmd, members(args)) })
        } catch (error) {
          send({ id, ok: false, error: error instanceof Error ? error.message : 'Failed' })
        }
      }),
    )
    return near
  }

  #run(command: unknown, { pin, value }: Members): string {
    switch (command) {
      case 'ping':
        return 'pong'
      case 'capabilities':
        return JSON.stringify({ gpio: PINS, led_pin: this.#board?.led ?? null, board: this.#name, firmware: 'sluice-sim 1' })
      case 'gpio_read':
        return String(this.#levelOf(pinOf(pin)))
      case 'gpio_write':
        this.#write(pinOf(pin), value === 0 || value === 1 ? value : refuse('Invalid value'))
        return 'done'
      case 'watch':
        this.#watched.add(pinOf(pin))
        return 'done'
      case 'unwatch':
        this.#watched.delete(pinOf(pin))
        return 'done'
      default:
        return refuse('Unknown command')
    }
  }

  #write(pin: number, level: 0 | 1): void {
    if (this.#watched.has(pin)) refuse('The pin is watched')
    const before = [...this.#watched].map((watched) => ({ watched, level: this.#levelOf(watched) }))
    this.#levels.set(pin, level)
    for (const { watched, level } of before) if (this.#levelOf(watched) !== level) this.#signal(`pin_${watched}`, this.#levelOf(watched))
    if (pin === BUTTON && level === 1) this.#signal('button', 1)
  }

  #levelOf(pin: number): 0 | 1 {
    return this.#levels.get(WIRED[pin] ?? pin) ?? 0
  }

  #signal(event: string, value: 0 | 1): void {
    for (const send of this.#senders) send({ event, value })
  }
}

const pinOf = (pin: unknown): number => (PINS.includes(Number(pin)) ? Number(pin) : refuse('Invalid pin'))

function refuse(why: string): never {
  throw new Error(why)
}
