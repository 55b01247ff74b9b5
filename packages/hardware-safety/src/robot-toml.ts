/** The schema of `robot.toml` in the data directory: the robot's drive, sensors and safety settings. Every key has a default. */
import { isDevicePath } from '@sluice/hardware'
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const between = (min: number, max: number) => v.pipe(v.number(), v.finite(), v.minValue(min), v.maxValue(max))
const pin = whole(0, 511)
const active = v.picklist(['high', 'low'])
const circles = v.optional(v.pipe(v.array(v.strictTuple([between(-100, 100), between(-100, 100), between(0, 100)])), v.maxLength(256)), [])

export const robotToml = v.object({
  drive: v.optional(
    v.object({
      /** `mock` is an alias of `sim`. */
      backend: v.optional(
        v.pipe(
          v.picklist(['sim', 'mock', 'serial']),
          v.transform((backend) => (backend === 'mock' ? 'sim' : backend)),
        ),
        'sim',
      ),
      serial_port: v.optional(
        v.pipe(
          v.string(),
          v.check((path) => isDevicePath(path, 'serial'), 'must be a serial port such as /dev/ttyACM0'),
        ),
        '/dev/ttyACM0',
      ),
      baud: v.optional(whole(9600, 4_000_000), 115_200),
      /** Metres per second. */
      max_speed: v.optional(between(0.01, 2), 0.5),
      /** Radians per second. */
      max_rotation: v.optional(between(0.05, 6.3), 1),
      /** The width of the robot in metres. */
      width: v.optional(between(0, 3), 0.3),
    }),
    {},
  ),
  sensors: v.optional(
    v.object({
      /** A path, or a label that `gpiodetect` shows. */
      gpio_chip: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(64)), '/dev/gpiochip0'),
      /** The trigger pin and the echo pin. */
      ultrasonic_pins: v.optional(v.strictTuple([pin, pin])),
      /** Degrees to the left of straight ahead. */
      ultrasonic_bearing: v.optional(between(-180, 180), 0),
    }),
    {},
  ),
  safety: v.optional(
    v.object({
      min_obstacle_distance: v.optional(between(0.02, 10), 0.3),
      slow_zone_multiplier: v.optional(between(1, 20), 3),
      approach_speed_limit: v.optional(between(0.01, 2), 0.3),
      max_drive_duration: v.optional(between(0.1, 600), 30),
      estop_pin: v.optional(pin),
      /**
       * The level that means pressed. `high` suits a switch to ground that opens when pressed: a broken wire then stops the
       * robot too.
       */
      estop_active: v.optional(active, 'high'),
      bump_sensor_pins: v.optional(v.pipe(v.array(pin), v.maxLength(8)), []),
      bump_active: v.optional(active, 'low'),
      bump_reverse_distance: v.optional(between(0, 1), 0.15),
      sensor_timeout_secs: v.optional(between(0.05, 5), 0.5),
      /** Metres per second in a direction that no sensor covers; 0 forbids to move there. */
      blind_mode_speed_limit: v.optional(between(0, 2), 0),
    }),
    {},
  ),
  /** The simulated room, in metres. The robot starts in the middle and looks along the x axis. */
  sim: v.optional(
    v.object({
      seed: v.optional(whole(0, 4_294_967_295), 1),
      room: v.optional(v.strictTuple([between(1, 100), between(1, 100)]), [6, 4]),
      /** x and y from the middle of the room, and the radius, of each obstacle. */
      obstacles: circles,
      /** Obstacles that only the bump sensors detect. */
      glass: circles,
      /** The standard deviation of a measured distance. */
      noise: v.optional(between(0, 1), 0.005),
      /** The share of readings that are lost, and the share of lost beams in the other readings. */
      dropout: v.optional(between(0, 1), 0.01),
    }),
    {},
  ),
})

export type RobotConfig = v.InferOutput<typeof robotToml>
