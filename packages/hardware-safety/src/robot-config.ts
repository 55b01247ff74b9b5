/** What a configuration means to the safety layers. Apart from its schema, which the safety process has no use for. */
import type { RobotLimits } from './core/robot-limits.ts'
import type { RobotConfig } from './robot-toml.ts'

/** Radians. */
export const degrees = Math.PI / 180
/** Of an ultrasonic sensor, to each side. */
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
    // Made-up distances are for made-up motors alone
    sensors: isSimulated(config) ? [{ name: LIDAR, bearing: 0, halfAngle: Math.PI }] : real,
  }
}
