/** What the safety layers are told of the robot once, in metres, radians and milliseconds. */

export interface RangeSensor {
  readonly name: string
  /** Where it looks, from straight ahead, to the left positive. */
  readonly bearing: number
  /** How far to each side of that. */
  readonly halfAngle: number
}

export interface RobotLimits {
  /** Metres a second, at speed 1. */
  readonly maxSpeed: number
  /** Radians a second, at speed 1. */
  readonly maxRotation: number
  /** Of the robot: what is farther to the side than half of it is not in its way. */
  readonly width: number
  readonly minDistance: number
  /** Below this many times `minDistance` it is slow. */
  readonly slowZone: number
  readonly approachSpeed: number
  /** Where no sensor looks; 0: it does not move there. */
  readonly blindSpeed: number
  readonly driveMsMax: number
  readonly sensorMsMax: number
  readonly bumpReverse: number
  readonly sensors: readonly RangeSensor[]
}
