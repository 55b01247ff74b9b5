/** A simulated robot: motors, a lidar, two bump sensors and an emergency stop in a small world. */
import type { Clock } from '@sluice/sdk'
import type { Velocity } from '../core/robot-event.ts'
import type { Body, Hear } from '../kernel/body.ts'
import { LIDAR } from '../robot-config.ts'
import type { RobotConfig } from '../robot-toml.ts'
import { createRandom } from './random.ts'
import { World } from './world.ts'

/** What happens without anybody asking, and who is told what the motors do; for demonstrations and measurements. */
export interface SimScript {
  /** A file that gets one line of JSON for each thing that happens: `atMs` is of the machine's monotonic clock. */
  readonly journal?: string
  /** The emergency stop is pressed so long after the motors first run. */
  readonly estopAfterMs?: number
}

export interface SimDeps {
  readonly config: RobotConfig
  readonly clock: Clock
  readonly hear: Hear
  /** Called with each thing that happens. */
  readonly note: (what: SimNote) => void
  readonly estopAfterMs?: number | undefined
}

export interface SimNote {
  readonly atMs: number
  readonly what: 'run' | 'halt' | 'estop' | 'closed'
}

const BEAMS = 72
const SPREAD = Math.PI / BEAMS
const RANGE = 8
export const BUMPERS = { front: 'the front bumper', back: 'the back bumper' } as const

export class SimBody implements Body {
  readonly #deps: SimDeps
  readonly #world: World
  readonly #random
  readonly #pressed = new Set<string>()
  #running: { readonly velocity: Velocity; readonly untilMs: number } | undefined
  #movedUntilMs: number
  #estop: 'waiting' | 'armed' | 'pressed' = 'waiting'
  readonly #closed = new AbortController()

  constructor(deps: SimDeps) {
    this.#deps = deps
    this.#world = new World(deps.config)
    this.#random = createRandom(deps.config.sim.seed)
    this.#movedUntilMs = deps.clock.monotonicMs()
  }

  /** Where the robot is now. */
  get pose() {
    this.#catchUp()
    return this.#world.pose
  }

  readonly drive = {
    run: (velocity: Velocity, forMs: number): void => {
      this.#catchUp()
      this.#running = { velocity, untilMs: this.#deps.clock.monotonicMs() + forMs }
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
    this.#feel()
    const { config, clock, hear } = this.#deps
    const { noise, dropout } = config.sim
    const isLost = () => this.#random.next() < dropout
    if (isLost()) return
    const beams = Array.from({ length: BEAMS }, (_, index) => (index * 2 * Math.PI) / BEAMS).flatMap((bearing) => {
      const distance = this.#world.distance(bearing) + this.#random.normal() * noise
      return isLost() ? [] : [{ bearing, spread: SPREAD, distance: distance > RANGE ? Number.POSITIVE_INFINITY : Math.max(0, distance) }]
    })
    hear({ kind: 'range', sensor: LIDAR, takenMs: clock.monotonicMs(), beams })
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.#note('closed')
  }

  /** What the motors did since it was last looked at. */
  #catchUp(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const { velocity, untilMs } = this.#running ?? { velocity: undefined, untilMs: 0 }
    const ms = Math.min(nowMs, untilMs) - this.#movedUntilMs
    if (velocity && ms > 0) this.#world.move(velocity, ms)
    this.#movedUntilMs = nowMs
  }

  #feel(): void {
    const touching = new Set(this.#world.touching().map((direction) => (Math.cos(direction) >= 0 ? BUMPERS.front : BUMPERS.back)))
    for (const sensor of Object.values(BUMPERS)) {
      const isPressed = touching.has(sensor)
      if (isPressed === this.#pressed.has(sensor)) continue
      if (isPressed) this.#pressed.add(sensor)
      else this.#pressed.delete(sensor)
      this.#deps.hear({ kind: 'bump', sensor, isPressed })
    }
  }

  #armEstop(): void {
    const { estopAfterMs, clock, hear } = this.#deps
    if (estopAfterMs === undefined || this.#estop !== 'waiting') return
    this.#estop = 'armed'
    void clock.sleep(estopAfterMs, this.#closed.signal).then(() => {
      if (this.#closed.signal.aborted) return
      this.#estop = 'pressed'
      this.#note('estop')
      hear({ kind: 'estop', isPressed: true })
    })
  }

  #note(what: SimNote['what']): void {
    this.#deps.note({ atMs: this.#deps.clock.monotonicMs(), what })
  }
}
