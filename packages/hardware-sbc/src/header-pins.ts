/** The pins of the header. Written pins are held, so that their level stays; pins that are read keep their direction. */
import type { Direction, Gpio, GpioLines, Level } from '@sluice/hardware'
import { SerialQueue } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { SbcModel } from './detect-board.ts'
import { checkPin } from './pin-rules.ts'

/** The holder's name that other programs see. */
const CONSUMER = 'sluice'
/** More calls than the device guard admits at a time. */
const CALLS_MAX = 256

export type OpenGpio = () => Promise<Gpio>

export interface PinReading {
  readonly level: Level
  readonly direction: Direction
  /** Says that the pin has another function, which is switched off. */
  readonly remark?: string
}

interface Chip {
  readonly gpio: Gpio
  readonly path: string
}

/**
 * Every method that accesses a pin throws as `checkPin` does, `conflict` with the holder's name when another program holds the pin, and
 * `unavailable` or `forbidden` when the chip cannot be used.
 */
export class HeaderPins {
  readonly #model: SbcModel
  readonly #root: string
  readonly #openGpio: OpenGpio
  readonly #held = new Map<number, GpioLines>()
  /** Calls run one at a time, because two first writes of a pin would both request its line. */
  readonly #calls = new SerialQueue({ name: 'the pins', tasksMax: CALLS_MAX })
  #opened: Promise<Chip> | undefined
  #isClosed = false

  constructor(model: SbcModel, { root, openGpio }: { readonly root: string; readonly openGpio: OpenGpio }) {
    this.#model = model
    this.#root = root
    this.#openGpio = openGpio
  }

  /** Returns whether the chip can be used. Never rejects. */
  isAvailable(): Promise<boolean> {
    return this.#chip().then(
      () => true,
      () => false,
    )
  }

  /** Throws when the pin cannot be read or written now. Does not access the pin. */
  check(pin: number): Promise<void> {
    return this.#run(async () => {
      if (!this.#held.has(pin)) await this.#inspect(pin)
    })
  }

  read(pin: number): Promise<PinReading> {
    return this.#run(async () => {
      const held = this.#held.get(pin)
      if (held) return { level: levelOf(held), direction: 'output' }
      const { chip, remark, direction } = await this.#inspect(pin)
      const line = await chip.gpio.request(chip.path, { offsets: [pin], consumer: CONSUMER, direction: 'as-is' })
      try {
        return { level: levelOf(line), direction, ...(remark !== undefined && { remark }) }
      } finally {
        line.close()
      }
    })
  }

  /** Sets the level and holds the pin. Returns a remark about the pin at its first write, if there is one. */
  write(pin: number, level: Level): Promise<string | undefined> {
    return this.#run(async () => {
      const held = this.#held.get(pin)
      if (held) {
        held.write([level])
        return undefined
      }
      const { chip, remark } = await this.#inspect(pin)
      const line = await chip.gpio.request(chip.path, { offsets: [pin], consumer: CONSUMER, direction: 'output', levels: [level] })
      this.#held.set(pin, line)
      return remark
    })
  }

  /** Releases all pins after the calls before it. Later calls throw `unavailable`. Idempotent. */
  async close(): Promise<void> {
    await this.#calls.run(async () => {
      this.#isClosed = true
      for (const line of this.#held.values()) line.close()
      this.#held.clear()
    })
  }

  #run<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#calls.run(async () => {
      if (this.#isClosed) throw new AppError('unavailable', 'The pins are closed')
      return work()
    })
  }

  /** Finds the chip once. A failure is not remembered, so that the next call tries again. */
  #chip(): Promise<Chip> {
    this.#opened ??= findChip(this.#openGpio, this.#model).catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** Checks a pin that is not held by Sluice. Throws `conflict` when another program holds it. */
  async #inspect(pin: number): Promise<{ readonly chip: Chip; readonly direction: Direction; readonly remark: string | undefined }> {
    const remark = await checkPin(pin, this.#model, this.#root)
    const chip = await this.#chip()
    const { isUsed, consumer, direction } = await chip.gpio.line(chip.path, pin)
    if (isUsed) throw new AppError('conflict', `GPIO ${pin} is in use by ${consumer || 'the kernel'}`)
    return { chip, direction, remark }
  }
}

/** Finds the header's chip. Throws `unavailable` when the machine has no such chip, and as `openGpio` and `chips` do. */
export async function findChip(openGpio: OpenGpio, { chip: { label, lines }, name }: SbcModel): Promise<Chip> {
  const gpio = await openGpio()
  const chips = await gpio.chips()
  const found = chips.find((chip) => chip.label === label && chip.lines === lines)
  if (found) return { gpio, path: found.path }
  const seen = chips.map((chip) => `${chip.label} (${chip.lines} lines)`).join(', ') || 'none'
  throw new AppError('unavailable', `The GPIO chip of model ${name}, ${label} with ${lines} lines, is missing; found: ${seen}`)
}

const levelOf = (line: GpioLines): Level => line.read()[0] ?? 0
