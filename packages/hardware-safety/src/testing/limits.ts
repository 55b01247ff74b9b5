/** The limits of a robot with one lidar that sees all around. */
import type { RobotLimits } from '../core/robot-state.ts'

export const LIMITS: RobotLimits = {
  maxSpeed: 0.5,
  maxRotation: 1,
  width: 0.3,
  minDistance: 0.3,
  slowZone: 3,
  approachSpeed: 0.3,
  blindSpeed: 0,
  driveMsMax: 30_000,
  sensorMsMax: 500,
  bumpReverse: 0.15,
  sensors: [{ name: 'lidar', bearing: 0, halfAngle: Math.PI }],
}
