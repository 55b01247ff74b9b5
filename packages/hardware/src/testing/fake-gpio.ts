/** GPIO chips in memory, for tests of code that uses GPIO lines. */
import { AppError } from '@sluice/sdk'
import type { Edge, Gpio, GpioLines, Level, LineRequest } from '../gpio/gpio.ts'

interface FakeLine {
  level: Level
  direction: 'input' | 'output'
  consumer: string | undefined
  watch: LineRequest['watch']
}

export interface FakeChip {
  readonly path: string
  readonly label: string
  readonly lines: number
}

export interface FakeGpio extends Gpio {
  /** Returns the level that an output drives or that `drive` applied to an input. */
  level(offset: number, chip?: string): Level
  /** Sets the level of a line from outside and emits the edge. */
  drive(offset: number, level: Level, chip?: string): void
  /** Makes another program hold a line. */
  claim(offset: number, consumer: string, chip?: string): void
  direction(offset: number, chip?: string): 'input' | 'output'
  consumer(offset: number, chip?: string): string | undefined
  /** The number of requests for lines so far. */
  readonly requests: number
}

export function fakeGpio(chips: readonly [FakeChip, ...FakeChip[]]): FakeGpio {
  const [{ path: first }] = chips
  const all = new Map<string, FakeLine>()
  let requests = 0
  let sequence = 0

  const lineOf = (offset: number, path = first): FakeLine => {
    const chip = chips.find((candidate) => candidate.path === path)
    if (!chip) throw new AppError('not_found', `There is no ${path}`)
    if (offset < 0 || offset >= chip.lines)
      throw new AppError('invalid_request', `${path} has no line ${offset}; its lines are 0 to ${chip.lines - 1}`)
    const key = `${path}/${offset}`
    const line = all.get(key) ?? { level: 0, direction: 'input', consumer: undefined, watch: undefined }
    all.set(key, line)
    return line
  }

  const hold = (lines: readonly FakeLine[], { offsets, direction, consumer, levels, watch }: LineRequest): GpioLines => {
    let isClosed = false
    const checkOpen = () => {
      if (isClosed) throw new AppError('unavailable', 'The lines are closed')
    }
    for (const [index, line] of lines.entries()) {
      line.consumer = consumer
      line.watch = watch
      if (direction !== 'as-is') line.direction = direction
      if (direction === 'output') line.level = levels?.[index] ?? 0
    }
    return {
      offsets,
      read: () => {
        checkOpen()
        return lines.map(({ level }) => level)
      },
      write: (given) => {
        checkOpen()
        if (direction !== 'output') throw new AppError('invalid_request', 'The lines are not outputs')
        for (const [index, line] of lines.entries()) line.level = given[index] ?? line.level
      },
      close: () => {
        if (isClosed) return
        isClosed = true
        for (const line of lines) {
          line.consumer = undefined
          line.watch = undefined
        }
      },
    }
  }

  return {
    chips: async () => [...chips],
    line: async (path, offset) => {
      const { consumer = '', direction } = lineOf(offset, path)
      return { offset, name: `GPIO${offset}`, isUsed: consumer !== '', consumer, direction }
    },
    request: async (path, request) => {
      requests++
      const lines = request.offsets.map((offset) => lineOf(offset, path))
      const held = lines.find(({ consumer }) => consumer !== undefined)
      if (held) throw new AppError('conflict', `A line of ${path} is in use by ${held.consumer}`)
      return hold(lines, request)
    },
    level: (offset, path) => lineOf(offset, path).level,
    drive(offset, level, path) {
      const line = lineOf(offset, path)
      if (line.level === level) return
      line.level = level
      const edge: Edge = level === 1 ? 'rising' : 'falling'
      if (line.watch && (line.watch.edge === 'both' || line.watch.edge === edge))
        line.watch.onEvent({ offset, edge, atNs: process.hrtime.bigint(), sequence: ++sequence })
    },
    claim: (offset, consumer, path) => {
      lineOf(offset, path).consumer = consumer
    },
    direction: (offset, path) => lineOf(offset, path).direction,
    consumer: (offset, path) => lineOf(offset, path).consumer,
    get requests() {
      return requests
    },
  }
}
