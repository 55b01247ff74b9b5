/**
 * A board that is not there, for trying tools and procedures: it speaks the line protocol over ports in memory, its pins keep
 * what they were set to, pin 3 is wired to pin 2, and pin 12 presses its button: each write of 1 to it is the signal `button`.
 * A watched pin tells its changes, and is not written to.
 */
import type { Board } from '@sluice/hardware'
import { members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import type { Port } from '../devices.ts'
import { createLineDecoder } from '../protocol/line-decoder.ts'
import { memoryPort } from './memory-port.ts'

const PINS = Array.from({ length: 30 }, (_, pin) => pin)
/** Reads what was written to the other. */
const WIRED: Readonly<Record<number, number>> = { 3: 2 }
const BUTTON = 12

/** Its pins outlive its ports, as a real board's outlive an open and a close. */
export interface SimBoard {
  open(): Port
}

export function createSimBoard(name: string, board: Board | undefined): SimBoard {
  const levels = new Map<number, 0 | 1>()
  const watched = new Set<number>()
  const say = new Set<(line: object) => void>()
  const levelOf = (pin: number): 0 | 1 => levels.get(WIRED[pin] ?? pin) ?? 0
  const signal = (event: string, value: 0 | 1): void => {
    for (const tell of say) tell({ event, value })
  }

  const commands: Readonly<Record<string, (args: Readonly<Record<string, unknown>>) => string>> = {
    ping: () => 'pong',
    capabilities: () => JSON.stringify({ gpio: PINS, led_pin: board?.led ?? null, board: name, firmware: 'sluice-sim 1' }),
    gpio_read: ({ pin }) => String(levelOf(pinOf(pin))),
    gpio_write: ({ pin, value }) => {
      const to = pinOf(pin)
      const level = value === 0 || value === 1 ? value : refuse('Invalid value')
      if (watched.has(to)) refuse('The pin is watched')
      const before = [...watched].map((pin) => ({ pin, level: levelOf(pin) }))
      levels.set(to, level)
      for (const { pin, level } of before) if (levelOf(pin) !== level) signal(`pin_${pin}`, levelOf(pin))
      if (to === BUTTON && level === 1) signal('button', 1)
      return 'done'
    },
    watch: ({ pin }) => {
      watched.add(pinOf(pin))
      return 'done'
    },
    unwatch: ({ pin }) => {
      watched.delete(pinOf(pin))
      return 'done'
    },
  }

  return {
    open() {
      const { near, far } = memoryPort()
      const tell = (line: object): void => void far.write(Buffer.from(`${JSON.stringify(line)}\n`))
      say.add(tell)
      far.onClose(() => void say.delete(tell))
      far.onData(
        createLineDecoder((line) => {
          if (line === '') return
          const { id, cmd, args } = members(parsedOrUndefined(line))
          try {
            const command = typeof cmd === 'string' && Object.hasOwn(commands, cmd) ? commands[cmd] : undefined
            const result = command ? command(members(args)) : refuse('Unknown command')
            tell({ id, ok: true, result })
          } catch (error) {
            tell({ id, ok: false, error: error instanceof Error ? error.message : 'Failed' })
          }
        }),
      )
      return near
    },
  }
}

const pinOf = (pin: unknown): number => (PINS.includes(Number(pin)) ? Number(pin) : refuse('Invalid pin'))

function refuse(why: string): never {
  throw new Error(why)
}
