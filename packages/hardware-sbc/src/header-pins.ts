/** The pins of the header: written ones are held, so that their level stays; read ones keep their direction. */
import type { Direction, Gpio, GpioLines, Level, LineRequest } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'
import type { SbcModel } from './models.ts'
import { checkPin } from './pin-rules.ts'

const CONSUMER = 'sluice'

export interface PinReading {
  readonly level: Level
  readonly direction: Direction
  readonly remark?: string
}

/** All throw as `checkPin` does, `conflict` with the holder's name, and `unavailable` or `forbidden` where lines cannot be had. */
export interface HeaderPins {
  /** Whether the chip can be reached; never rejects. */
  isThere(): Promise<boolean>
  /** Whether it can be read and written just now; touches nothing. */
  check(pin: number): Promise<void>
  read(pin: number): Promise<PinReading>
  /** Gives the remark on the pin, if there is one. */
  write(pin: number, level: Level): Promise<string | undefined>
  /** Lets go of all pins. Idempotent; nothing can be read or written afterwards. */
  close(): Promise<void>
}

interface PinsOptions {
  readonly model: SbcModel
  readonly root: string
  readonly openGpio: () => Promise<Gpio>
}

export function createHeaderPins({ model, root, openGpio }: PinsOptions): HeaderPins {
  const held = new Map<number, GpioLines>()
  let opened: Promise<{ gpio: Gpio; chip: string }> | undefined
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()

  const chip = () => {
    opened ??= findChip(openGpio, model).catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }

  /** One after the other: two writes of a new pin would each want its line. */
  const inOrder = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = last.then(() => {
      if (isClosed) throw new AppError('unavailable', 'The pins are closed')
      return work()
    })
    last = result.catch(() => undefined)
    return result
  }

  /** Of a pin that is not held here. */
  const look = async (pin: number) => {
    const remark = await checkPin(pin, model, root)
    const { gpio, chip: path } = await chip()
    const { isUsed, consumer, direction } = await gpio.line(path, pin)
    if (isUsed) throw new AppError('conflict', `GPIO ${pin} is in use by ${consumer || 'the kernel'}`)
    const request = (want: Pick<LineRequest, 'direction' | 'levels'>) => gpio.request(path, { offsets: [pin], consumer: CONSUMER, ...want })
    return { remark, direction, request }
  }

  return {
    isThere: () =>
      chip().then(
        () => true,
        () => false,
      ),
    check: (pin) =>
      inOrder(async () => {
        if (!held.has(pin)) await look(pin)
      }),
    read: (pin) =>
      inOrder(async () => {
        const driven = held.get(pin)
        if (driven) return { level: levelOf(driven), direction: 'output' }
        const { remark, direction, request } = await look(pin)
        const line = await request({ direction: 'as-is' })
        try {
          return { level: levelOf(line), direction, ...(remark !== undefined && { remark }) }
        } finally {
          line.close()
        }
      }),
    write: (pin, level) =>
      inOrder(async () => {
        const driven = held.get(pin)
        if (driven) {
          driven.write([level])
          return undefined
        }
        const { remark, request } = await look(pin)
        held.set(pin, await request({ direction: 'output', levels: [level] }))
        return remark
      }),
    async close() {
      await inOrder(async () => {
        isClosed = true
        for (const line of held.values()) line.close()
        held.clear()
      }).catch(() => undefined)
    },
  }
}

/** The path of the header's chip. Throws `unavailable` if there is none, and as `openGpio` and `chips` do. */
export async function findChip(openGpio: () => Promise<Gpio>, { chip: { label, lines }, name }: SbcModel) {
  const gpio = await openGpio()
  const chips = await gpio.chips()
  const found = chips.find((chip) => chip.label === label && chip.lines === lines)
  if (found) return { gpio, chip: found.path }
  const seen = chips.map((chip) => `${chip.label} (${chip.lines} lines)`).join(', ') || 'none'
  throw new AppError('unavailable', `The GPIO chip of model ${name}, ${label} with ${lines} lines, is not there; found: ${seen}`)
}

const levelOf = (line: GpioLines): Level => line.read()[0] ?? 0
