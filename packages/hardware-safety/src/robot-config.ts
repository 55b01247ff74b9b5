/**
 * Derives the limits of the safety layers, and the GPIO chip, from robot.toml. The schema is in a file of its own, which the
 * safety process does not load.
 */
import type { Gpio } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'
import type { RobotLimits } from './core/robot-state.ts'
import type { RobotConfig } from './robot-toml.ts'

/** One degree in radians. */
export const degrees = Math.PI / 180
/** Half the field of view of an ultrasonic sensor, in radians. */
export const ULTRASONIC_CONE = 15 * degrees
export const ULTRASONIC = 'ultrasonic'
export const LIDAR = 'lidar'

export const isSimulated = ({ drive }: RobotConfig): boolean => drive.backend === 'sim'

export function limitsOf(config: RobotConfig): RobotLimits {
  const { drive, safety, sensors } = config
  const ultrasonic = { name: ULTRASONIC, bearing: sensors.ultrasonic_bearing * degrees, halfAngle: ULTRASONIC_CONE }
  const real = sensors.ultrasonic_pins ? [ultrasonic] : []
  return {
    maxSpeed: drive.max_speed,
    maxRotation: drive.max_rotation,
    width: drive.width,
    minDistance: safety.min_obstacle_distance,
    slowZone: safety.slow_zone_multiplier,
    approachSpeed: safety.approach_speed_limit,
    blindSpeed: safety.blind_mode_speed_limit,
    driveMsMax: safety.max_drive_duration * 1000,
    sensorMsMax: safety.sensor_timeout_secs * 1000,
    bumpReverse: safety.bump_reverse_distance,
    // Simulated sensors must never lead real motors.
    sensors: isSimulated(config) ? [{ name: LIDAR, bearing: 0, halfAngle: Math.PI }] : real,
  }
}

/**
 * Returns the path of the GPIO chip with the given path or label. A label stays the same when the system numbers its chips
 * differently. Throws `not_found` when no chip has the label.
 */
export async function findGpioChip(gpio: Pick<Gpio, 'chips'>, name: string): Promise<string> {
  if (name.startsWith('/dev/')) return name
  const chips = await gpio.chips()
  const chip = chips.find(({ label }) => label === name)
  if (chip) return chip.path
  const known = chips.map(({ label, path }) => `${label} (${path})`).join(', ') || 'none'
  throw new AppError('not_found', `There is no GPIO chip '${name}'; this machine has: ${known}`)
}
