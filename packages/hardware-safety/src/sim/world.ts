/** The simulated world: a rectangular room with round obstacles and a round robot that can see and touch them. */
import type { Velocity } from '../core/robot-event.ts'
import type { RobotConfig } from '../robot-toml.ts'

export interface Pose {
  readonly x: number
  readonly y: number
  /** Radians to the left of the x axis. */
  readonly angle: number
}

type Circle = readonly [x: number, y: number, radius: number]

/** The longest step in metres, so that the robot does not jump over an obstacle. */
const STEP = 0.005
/** The distance in metres up to which a bump sensor reports contact. */
const TOUCH = 0.01

export class World {
  readonly #halfRoom: readonly [x: number, y: number]
  readonly #visible: readonly Circle[]
  readonly #solid: readonly Circle[]
  readonly #radius: number
  #pose: Pose = { x: 0, y: 0, angle: 0 }

  constructor({ sim, drive }: RobotConfig) {
    this.#halfRoom = [sim.room[0] / 2, sim.room[1] / 2]
    this.#visible = sim.obstacles
    this.#solid = [...sim.obstacles, ...sim.glass]
    this.#radius = drive.width / 2
  }

  get pose(): Pose {
    return this.#pose
  }

  /** Moves the robot for `ms` milliseconds. Walls and solid obstacles stop it. */
  move({ x, y, turn }: Velocity, ms: number): void {
    const steps = Math.max(1, Math.ceil((Math.hypot(x, y) * ms) / 1000 / STEP))
    const secs = ms / 1000 / steps
    for (let step = 0; step < steps; step++) {
      const { x: fromX, y: fromY, angle } = this.#pose
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
      const next = { x: fromX + (x * cos - y * sin) * secs, y: fromY + (x * sin + y * cos) * secs, angle: angle + turn * secs }
      this.#pose = this.#contacts(next, 0).length > 0 ? { ...this.#pose, angle: next.angle } : next
    }
  }

  /** Returns the metres to the nearest wall or visible obstacle in a direction relative to the robot. */
  distance(bearing: number): number {
    const { x, y, angle } = this.#pose
    const [dx, dy] = [Math.cos(angle + bearing), Math.sin(angle + bearing)]
    const [halfX, halfY] = this.#halfRoom
    const walls = [wallAt(dx, x, halfX), wallAt(dy, y, halfY)]
    return Math.min(...walls, ...this.#visible.map((circle) => circleAt(circle, [x, y], [dx, dy])))
  }

  /** Returns the directions, relative to the robot, in which something touches it. */
  touching(): readonly number[] {
    return this.#contacts(this.#pose, TOUCH).map((direction) => direction - this.#pose.angle)
  }

  #contacts({ x, y }: Pose, margin: number): number[] {
    const reach = this.#radius + margin
    const [halfX, halfY] = this.#halfRoom
    const found: number[] = []
    if (halfX - x < reach) found.push(0)
    if (x + halfX < reach) found.push(Math.PI)
    if (halfY - y < reach) found.push(Math.PI / 2)
    if (y + halfY < reach) found.push(-Math.PI / 2)
    for (const [cx, cy, radius] of this.#solid) if (Math.hypot(cx - x, cy - y) < radius + reach) found.push(Math.atan2(cy - y, cx - x))
    return found
  }
}

/** Returns the metres along a ray until one coordinate reaches the wall. */
const wallAt = (direction: number, at: number, half: number): number =>
  direction === 0 ? Number.POSITIVE_INFINITY : Math.max(0, (Math.sign(direction) * half - at) / direction)

/** Returns the metres along a ray to the circle, or `Infinity` when the ray misses it. */
function circleAt([cx, cy, radius]: Circle, [x, y]: readonly [number, number], [dx, dy]: readonly [number, number]): number {
  const along = (cx - x) * dx + (cy - y) * dy
  const square = radius ** 2 - ((cx - x) ** 2 + (cy - y) ** 2 - along ** 2)
  if (along <= 0 || square < 0) return Number.POSITIVE_INFINITY
  return Math.max(0, along - Math.sqrt(square))
}
