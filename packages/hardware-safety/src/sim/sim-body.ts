/** A simulated robot: motors, a lidar, two bump sensors and an emergency stop in a small world. */
import type { Clock } from '@sluice/sdk'
import type { Velocity } from '../core/robot-event.ts'
import type { Body, Report } from '../kernel/body.ts'
import { LIDAR } from '../robot-config.ts'
import type { RobotConfig } from '../robot-toml.ts'
import { World } from './world.ts'

/** Additional behaviour of the simulator, for demonstrations and measurements. */
export interface SimScript {
  /** A file that gets one `SimNote` per line as JSON, with times of the machine's monotonic clock. */
  readonly journal?: string
  /** Presses the emergency stop this long after the motors first run. */
  readonly estopAfterMs?: number
}

/** An entry of the simulator's journal. */
export interface SimNote {
  readonly atMs: number
  readonly what: 'run' | 'halt' | 'estop' | 'closed'
}

const BEAMS = 72
const SPREAD = Math.PI / BEAMS
const RANGE = 8
export const BUMPERS = { front: 'the front bumper', back: 'the back bumper' } as const

export class SimBody implements Body {
  readonly #config: RobotConfig
  readonly #clock: Clock
  readonly #report: Report
  readonly #onNote: ((note: SimNote) => void) | undefined
  readonly #estopAfterMs: number | undefined
  readonly #world: World
  readonly #random: Random
  readonly #pressed = new Set<string>()
  #running: { readonly velocity: Velocity; readonly untilMs: number } | undefined
  #movedUntilMs: number
  #estop: 'waiting' | 'armed' | 'pressed' = 'waiting'
  readonly #closed = new AbortController()

  /** `onNote` gets each command to the motors and each press of the emergency stop. */
  constructor(
    config: RobotConfig,
    clock: Clock,
    report: Report,
    script: { readonly onNote?: ((note: SimNote) => void) | undefined; readonly estopAfterMs?: number | undefined } = {},
  ) {
    this.#config = config
    this.#clock = clock
    this.#report = report
    this.#onNote = script.onNote
    this.#estopAfterMs = script.estopAfterMs
    this.#world = new World(config)
    this.#random = createRandom(config.sim.seed)
    this.#movedUntilMs = clock.monotonicMs()
  }

  /** The position and direction of the robot at this moment. */
  get pose() {
    this.#catchUp()
    return this.#world.pose
  }

  readonly drive = {
    run: (velocity: Velocity, forMs: number): void => {
      this.#catchUp()
      this.#running = { velocity, untilMs: this.#clock.monotonicMs() + forMs }
      this.#note('run')
      this.#armEstop()
    },
    halt: async (): Promise<void> => {
      this.#catchUp()
      this.#running = undefined
      this.#note('halt')
    },
  }

  poll(): void {
    this.#catchUp()
    this.#reportBumps()
    const { noise, dropout } = this.#config.sim
    const isLost = () => this.#random.next() < dropout
    if (isLost()) return
    const beams = Array.from({ length: BEAMS }, (_, index) => (index * 2 * Math.PI) / BEAMS).flatMap((bearing) => {
      const distance = this.#world.distance(bearing) + this.#random.normal() * noise
      return isLost() ? [] : [{ bearing, spread: SPREAD, distance: distance > RANGE ? Number.POSITIVE_INFINITY : Math.max(0, distance) }]
    })
    this.#report({ kind: 'range', sensor: LIDAR, takenMs: this.#clock.monotonicMs(), beams })
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.#note('closed')
  }

  /** Moves the robot as far as its motors have run since the last call. */
  #catchUp(): void {
    const nowMs = this.#clock.monotonicMs()
    const { velocity, untilMs } = this.#running ?? { velocity: undefined, untilMs: 0 }
    const ms = Math.min(nowMs, untilMs) - this.#movedUntilMs
    if (velocity && ms > 0) this.#world.move(velocity, ms)
    this.#movedUntilMs = nowMs
  }

  #reportBumps(): void {
    const touching = new Set(this.#world.touching().map((direction) => (Math.cos(direction) >= 0 ? BUMPERS.front : BUMPERS.back)))
    for (const sensor of Object.values(BUMPERS)) {
      const isPressed = touching.has(sensor)
      if (isPressed === this.#pressed.has(sensor)) continue
      if (isPressed) this.#pressed.add(sensor)
      else this.#pressed.delete(sensor)
      this.#report({ kind: 'bump', sensor, isPressed })
    }
  }

  #armEstop(): void {
    if (this.#estopAfterMs === undefined || this.#estop !== 'waiting') return
    this.#estop = 'armed'
    void this.#clock.sleep(this.#estopAfterMs, this.#closed.signal).then(() => {
      if (this.#closed.signal.aborted) return
      this.#estop = 'pressed'
      this.#note('estop')
      this.#report({ kind: 'estop', isPressed: true })
    })
  }

  #note(what: SimNote['what']): void {
    this.#onNote?.({ atMs: this.#clock.monotonicMs(), what })
  }
}

interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number
  /** Returns a normally distributed number with mean 0 and standard deviation 1. */
  normal(): number
}

/** Returns a generator of pseudo-random numbers (mulberry32) that are the same for the same seed. */
function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return { next, normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()) }
}
