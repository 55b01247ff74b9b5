/**
 * Watches a robot from outside, by its events and its commands, and reports a violation when the motors run although
 * something demands a stop. It shares no code with the layers that it judges.
 */
import type { Beam, RobotCommand, RobotEvent, Velocity } from '../core/robot-event.ts'
import type { RobotLimits } from '../core/robot-state.ts'

interface Reading {
  readonly takenMs: number
  readonly beams: readonly Beam[]
  /** Metres driven when the reading was taken. */
  readonly gone: number
  /** Radians turned to the left when the reading was taken. */
  readonly turned: number
}

interface Segment {
  readonly velocity: Velocity
  readonly fromMs: number
  untilMs: number
}

const EPSILON_MS = 0.01
const EPSILON_M = 1e-6

export class Oracle {
  readonly #limits: RobotLimits
  readonly #readings = new Map<string, Reading>()
  readonly #touching = new Set<string>()
  /** The commands that the motors carried out. */
  readonly #segments: Segment[] = []
  #isPressed = false
  #isLatched = false
  #isBroken = false
  /** The current movement. */
  #begun: { readonly id: number; readonly atMs: number } | undefined
  #backOff: { readonly from: ReadonlySet<string>; readonly sinceMs: number; readonly gone: number; readonly was: Velocity } | undefined
  #nowMs = 0

  constructor(limits: RobotLimits) {
    this.#limits = limits
  }

  /** The total metres driven. */
  get metres(): number {
    return this.#goneUntil(this.#nowMs)
  }

  /** Returns the violation in the time until `atMs`, in which no event arrived, or undefined. */
  passed(atMs: number): string | undefined {
    const running = this.#segments.at(-1)
    const ranUntilMs = running && Math.min(atMs, running.untilMs)
    const wrong = ranUntilMs !== undefined && ranUntilMs > this.#nowMs ? this.#wrongAt(ranUntilMs, running.velocity) : undefined
    this.#nowMs = atMs
    return wrong
  }

  /** Returns the violation after an event and the commands it led to, or undefined. */
  answered(event: RobotEvent, commands: readonly RobotCommand[]): string | undefined {
    this.#takeEvent(event)
    const wrong = commands.map((command) => this.#takeCommand(command, event)).find((problem) => problem !== undefined)
    const running = this.#segments.at(-1)
    const isRunning = running !== undefined && running.untilMs > event.atMs
    return wrong ?? (isRunning ? this.#wrongAt(event.atMs, running.velocity) : undefined)
  }

  #takeEvent(event: RobotEvent): void {
    switch (event.kind) {
      case 'range': {
        const last = this.#readings.get(event.sensor)
        const isNewer = !last || event.takenMs > last.takenMs
        const then = { gone: this.#goneUntil(event.takenMs), turned: this.#turnedUntil(event.takenMs) }
        if (isNewer) this.#readings.set(event.sensor, { takenMs: event.takenMs, beams: event.beams, ...then })
        return
      }
      case 'bump':
        if (event.isPressed) this.#touching.add(event.sensor)
        else this.#touching.delete(event.sensor)
        return
      case 'estop':
        this.#isPressed = event.isPressed
        this.#isLatched ||= event.isPressed
        return
      case 'fault':
        this.#isBroken = true
        return
      case 'stop':
        this.#isLatched ||= event.latches ?? false
        return
      case 'reset':
        if (!this.#isPressed) this.#isLatched = false
    }
  }

  #takeCommand(command: RobotCommand, { kind, atMs }: RobotEvent): string | undefined {
    const running = this.#segments.at(-1)
    switch (command.kind) {
      case 'began':
        this.#begun = { id: command.id, atMs }
        return
      case 'halt':
        if (running && this.#touching.size > 0 && !this.#backOff && kind === 'bump' && this.#begun)
          this.#backOff = { from: new Set(this.#touching), sinceMs: atMs, gone: this.#goneUntil(atMs), was: running.velocity }
        if (running) running.untilMs = Math.min(running.untilMs, atMs)
        return
      case 'ended':
        if (command.end.id !== this.#begun?.id) return
        this.#begun = undefined
        this.#backOff = undefined
        return
      case 'run':
        if (kind === 'stop') return 'the motors were started by a stop'
        if (running) running.untilMs = Math.min(running.untilMs, atMs)
        this.#segments.push({ velocity: command.velocity, fromMs: atMs, untilMs: atMs + command.forMs })
    }
    return
  }

  #goneUntil(atMs: number): number {
    return this.#sumUntil(atMs, ({ x, y }) => Math.hypot(x, y))
  }

  #turnedUntil(atMs: number): number {
    return this.#sumUntil(atMs, ({ turn }) => turn)
  }

  #sumUntil(atMs: number, of: (velocity: Velocity) => number): number {
    return this.#segments.reduce((sum, { velocity, fromMs, untilMs }) => {
      const ms = Math.max(0, Math.min(untilMs, atMs) - fromMs)
      return sum + (of(velocity) * ms) / 1000
    }, 0)
  }

  #wrongAt(atMs: number, velocity: Velocity): string | undefined {
    const { driveMsMax, sensorMsMax, sensors, maxSpeed, maxRotation } = this.#limits
    const sinceMs = this.#backOff?.sinceMs ?? this.#begun?.atMs
    if (sinceMs === undefined) return 'the motors run without a request'
    if (this.#isPressed) return 'the motors run while the emergency stop is pressed'
    if (this.#isLatched) return 'the motors run although the emergency stop was not reset'
    if (this.#isBroken) return 'the motors run although a part has failed'
    if (atMs - sinceMs > driveMsMax + EPSILON_MS) return 'the motors run for longer than they may'
    for (const { name } of sensors) {
      const reading = this.#readings.get(name)
      if (!reading) return `the motors run without any reading of ${name}`
      if (atMs - reading.takenMs > sensorMsMax + EPSILON_MS) return `the motors run with a stale reading of ${name}`
    }
    const speed = Math.hypot(velocity.x, velocity.y)
    if (speed > maxSpeed + EPSILON_M || Math.abs(velocity.turn) > maxRotation + EPSILON_M) return 'the motors run too fast'
    return this.#wrongTouch(atMs, velocity) ?? (speed > 0 ? this.#wrongWay(atMs, velocity, speed) : undefined)
  }

  #wrongTouch(atMs: number, velocity: Velocity): string | undefined {
    const backOff = this.#backOff
    if (!backOff) return this.#touching.size > 0 ? 'the motors run while something is touched' : undefined
    for (const sensor of this.#touching) if (!backOff.from.has(sensor)) return 'the robot backs off into something'
    const isOpposite = velocity.x * backOff.was.x + velocity.y * backOff.was.y < 0
    if (!isOpposite) return 'the robot goes on instead of backing off'
    return this.#goneUntil(atMs) - backOff.gone > this.#limits.bumpReverse + EPSILON_M ? 'the robot backs off too far' : undefined
  }

  /** Treats each beam as three points: its middle and both edges. */
  #wrongWay(atMs: number, velocity: Velocity, speed: number): string | undefined {
    const { sensors, minDistance, width, blindSpeed } = this.#limits
    const [aheadX, aheadY] = [velocity.x / speed, velocity.y / speed]
    let covered = false
    let seen = false
    for (const { name, bearing, halfAngle } of sensors) {
      const reading = this.#readings.get(name)
      const looksThere = aheadX * Math.cos(bearing) + aheadY * Math.sin(bearing) >= Math.cos(halfAngle) - 1e-9
      covered ||= looksThere
      const turned = this.#turnedUntil(atMs) - (reading?.turned ?? 0)
      for (const beam of reading?.beams ?? []) {
        for (const then of [beam.bearing - beam.spread, beam.bearing, beam.bearing + beam.spread]) {
          seen ||= looksThere && aheadX * Math.cos(then) + aheadY * Math.sin(then) >= Math.cos(0.3)
          const angle = then - turned
          const along = aheadX * Math.cos(angle) + aheadY * Math.sin(angle)
          const beside = Math.abs(aheadX * Math.sin(angle) - aheadY * Math.cos(angle))
          if (beam.distance === Number.POSITIVE_INFINITY || along <= 0 || beside * beam.distance > width / 2) continue
          const gone = this.#goneUntil(atMs) - (reading?.gone ?? 0)
          if (beam.distance * along - gone < minDistance - EPSILON_M) return `the motors run towards an obstacle at ${beam.distance} m`
        }
      }
    }
    if (covered && !seen) return 'the motors run in a direction that a sensor covers but does not see'
    return !covered && speed > blindSpeed + EPSILON_M ? 'the motors run blindly' : undefined
  }
}
