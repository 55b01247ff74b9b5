/** The input of the `drive` tool, and its conversion to a movement in metres, radians and milliseconds. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import type { Movement, Velocity } from './core/robot-event.ts'
import { degrees } from './robot-config.ts'
import type { RobotConfig } from './robot-toml.ts'

const METRES_MAX = 50
const DEGREES_MAX = 720
const DURATION_MS_MAX = 60_000
const share = v.pipe(v.number(), v.finite(), v.minValue(-1), v.maxValue(1))

export const driveInput = v.object({
  action: v.pipe(
    v.picklist(['forward', 'backward', 'left', 'right', 'rotate_left', 'rotate_right', 'stop', 'custom']),
    v.description('left and right move sideways; custom takes linear_x, linear_y, angular_z and duration_ms'),
  ),
  distance: v.optional(
    v.pipe(
      v.number(),
      v.finite(),
      v.minValue(0.01),
      v.maxValue(DEGREES_MAX),
      v.description(`Metres, at most ${METRES_MAX}; degrees for a rotation. Default: 0.5 m or 90 degrees`),
    ),
  ),
  speed: v.optional(v.pipe(v.number(), v.finite(), v.minValue(0.01), v.maxValue(1), v.description('A share of the highest speed')), 0.5),
  linear_x: v.optional(v.pipe(share, v.description('custom: ahead, as a share of the highest speed')), 0),
  linear_y: v.optional(v.pipe(share, v.description('custom: to the left')), 0),
  angular_z: v.optional(v.pipe(share, v.description('custom: rotation to the left, as a share of the fastest')), 0),
  duration_ms: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(DURATION_MS_MAX), v.description('custom: the duration')),
    1000,
  ),
})

export type DriveInput = v.InferOutput<typeof driveInput>

const HEADINGS = { forward: [1, 0], backward: [-1, 0], left: [0, 1], right: [0, -1] } as const
const TURNS = { rotate_left: 1, rotate_right: -1 } as const

/** Returns undefined for a stop. Throws `invalid_request` when the input describes no movement. */
export function movementOf(input: DriveInput, { drive }: RobotConfig): Movement | undefined {
  const { action, distance, speed } = input
  switch (action) {
    case 'stop':
      return undefined
    case 'custom':
      return customOf(input, drive)
    case 'rotate_left':
    case 'rotate_right':
      return { velocity: { x: 0, y: 0, turn: TURNS[action] * speed * drive.max_rotation }, amount: (distance ?? 90) * degrees, forMs: null }
    default: {
      if (distance !== undefined && distance > METRES_MAX)
        throw new AppError('invalid_request', `\`distance\` must be at most ${METRES_MAX} m; got ${distance}`)
      const [x, y] = HEADINGS[action]
      const metresASecond = speed * drive.max_speed
      return { velocity: { x: x * metresASecond, y: y * metresASecond, turn: 0 }, amount: distance ?? 0.5, forMs: null }
    }
  }
}

function customOf({ linear_x, linear_y, angular_z, duration_ms }: DriveInput, drive: RobotConfig['drive']): Movement {
  const velocity: Velocity = { x: linear_x * drive.max_speed, y: linear_y * drive.max_speed, turn: angular_z * drive.max_rotation }
  if (velocity.x === 0 && velocity.y === 0 && velocity.turn === 0)
    throw new AppError('invalid_request', 'Set linear_x, linear_y or angular_z to a value other than 0 for a custom movement')
  return { velocity, amount: null, forMs: duration_ms }
}
