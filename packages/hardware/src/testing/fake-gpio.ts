/** GPIO chips in memory, for tests of code that uses GPIO lines. */
import { AppError } from '@sluice/sdk'
import type { Direction, Edge, Gpio, GpioChip, GpioLineInfo, GpioLines, Level, LineRequest } from '../gpio/gpio.ts'

interface FakeLine {
  level: Level
  direction: Direction
  consumer: string | undefined
  watch: LineRequest['watch']
}

/** Creates chips whose lines are free inputs with the level 0. */
export const fakeGpio = (chips: readonly [GpioChip, ...GpioChip[]]): FakeGpio => new FakeGpio(chips)

/** Every method for tests uses the first chip unless the path of another one is given. */
export class FakeGpio implements Gpio {
  readonly #chips: readonly [GpioChip, ...GpioChip[]]
  readonly #lines = new Map<string, FakeLine>()
  #requests = 0
  #sequence = 0

  constructor(chips: readonly [GpioChip, ...GpioChip[]]) {
    this.#chips = chips
  }

  async chips(): Promise<GpioChip[]> {
    return [...this.#chips]
  }

  async line(path: string, offset: number): Promise<GpioLineInfo> {
    const { consumer = '', direction } = this.#line(offset, path)
    return { offset, name: `GPIO${offset}`, isUsed: consumer !== '', consumer, direction }
  }

  async request(path: string, request: LineRequest): Promise<GpioLines> {
    this.#requests++
    const lines = request.offsets.map((offset) => this.#line(offset, path))
    const held = lines.find(({ consumer }) => consumer !== undefined)
    if (held) throw new AppError('conflict', `A line of ${path} is in use by ${held.consumer}`)
    return new FakeLines(lines, request)
  }

  /** Returns the level that an output drives or that `drive` applied to an input. */
  level(offset: number, path?: string): Level {
    return this.#line(offset, path).level
  }

  /** Sets the level of a line from outside and emits the edge. */
  drive(offset: number, level: Level, path?: string): void {
    const line = this.#line(offset, path)
    if (line.level === level) return
    line.level = level
    const edge: Edge = level === 1 ? 'rising' : 'falling'
    if (line.watch && (line.watch.edge === 'both' || line.watch.edge === edge))
      line.watch.onEvent({ offset, edge, atNs: process.hrtime.bigint(), sequence: ++this.#sequence })
  }

  /** Makes another program hold a line. */
  claim(offset: number, consumer: string, path?: string): void {
    this.#line(offset, path).consumer = consumer
  }

  direction(offset: number, path?: string): Direction {
    return this.#line(offset, path).direction
  }

  consumer(offset: number, path?: string): string | undefined {
    return this.#line(offset, path).consumer
  }

  /** The number of requests for lines so far. */
  get requests(): number {
    return this.#requests
  }

  #line(offset: number, path = this.#chips[0].path): FakeLine {
    const chip = this.#chips.find((candidate) => candidate.path === path)
    if (!chip) throw new AppError('not_found', `There is no ${path}`)
    if (offset < 0 || offset >= chip.lines)
      throw new AppError('invalid_request', `${path} has no line ${offset}; its lines are 0 to ${chip.lines - 1}`)
    const key = `${path}/${offset}`
    const line = this.#lines.get(key) ?? { level: 0, direction: 'input', consumer: undefined, watch: undefined }
    this.#lines.set(key, line)
    return line
  }
}

class FakeLines implements GpioLines {
  readonly offsets: readonly number[]
  readonly #lines: readonly FakeLine[]
  readonly #isOutput: boolean
  #isClosed = false

  /** Takes the lines. */
  constructor(lines: readonly FakeLine[], { offsets, direction, consumer, levels, watch }: LineRequest) {
    this.offsets = offsets
    this.#lines = lines
    this.#isOutput = direction === 'output'
    for (const [index, line] of lines.entries()) {
      line.consumer = consumer
      line.watch = watch
      if (direction !== 'as-is') line.direction = direction
      if (direction === 'output') line.level = levels?.[index] ?? 0
    }
  }

  read(): Level[] {
    this.#checkOpen()
    return this.#lines.map(({ level }) => level)
  }

  write(levels: readonly Level[]): void {
    this.#checkOpen()
    if (!this.#isOutput) throw new AppError('invalid_request', 'The lines are not outputs')
    for (const [index, line] of this.#lines.entries()) line.level = levels[index] ?? line.level
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const line of this.#lines) {
      line.consumer = undefined
      line.watch = undefined
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new AppError('unavailable', 'The lines are closed')
  }
}
