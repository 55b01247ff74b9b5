/**
 * The safety layers. Each one looks at a movement and demands a stop, with the reason, when the movement must not go on.
 * See docs/contract.md#safety.
 */
import { clearance } from './clearance.ts'
import type { EndReason } from './robot-event.ts'
import { type Move, type RobotState, takenMsOf } from './robot-state.ts'

/** A demand to end the movement. */
export interface Demand {
  readonly reason: EndReason
  /** The cause, as in `MoveEnd`. */
  readonly why: string
}

/** Metres above the least distance at which an obstacle counts as reached. */
const AT_LIMIT = 0.005

type Layer = (state: RobotState, move: Move) => Demand | undefined

const estop: Layer = ({ latched, isEstopPressed }) => {
  if (isEstopPressed) return { reason: 'estop', why: 'the emergency stop is pressed' }
  return latched === null ? undefined : { reason: 'estop', why: `the robot was stopped (${latched}) and waits for a person to reset it` }
}

const fault: Layer = ({ fault: what }) => (what === null ? undefined : { reason: 'fault', why: what })

const bump: Layer = ({ pressed, bumpedUntilMs, nowMs }, { phase, from }) => {
  const touching = pressed.filter((sensor) => !from.includes(sensor))
  if (touching.length > 0) return { reason: 'bump', why: `something touches ${touching.join(' and ')}` }
  const isHeld = phase !== 'retreating' && (pressed.length > 0 || nowMs < bumpedUntilMs)
  return isHeld ? { reason: 'bump', why: 'the robot bumped into something just now' } : undefined
}

const sensors: Layer = (state, { heading }) => {
  const stale = staleSensors(state)
  if (stale.length > 0) return { reason: 'sensors', why: `there is no fresh reading of ${stale.join(' and ')}` }
  if (heading === null && state.limits.sensors.length > 0) return undefined
  const { sight } = heading === null ? { sight: 'blind' as const } : clearance(state, heading)
  if (sight === 'unseen') return { reason: 'sensors', why: 'the sensors do not see the way' }
  return sight === 'blind' && state.limits.blindSpeed === 0 ? { reason: 'sensors', why: 'no sensor covers that direction' } : undefined
}

const obstacle: Layer = (state, { heading, request }) => {
  if (heading === null) return undefined
  const { distance } = clearance(state, heading, request.velocity.turn)
  const isNear = distance - state.limits.minDistance < AT_LIMIT
  return isNear ? { reason: 'obstacle', why: `an obstacle is at ${distance.toFixed(2)} m` } : undefined
}

const watchdog: Layer = ({ nowMs, limits }, { sinceMs, phase }) =>
  phase !== 'checking' && nowMs - sinceMs >= limits.driveMsMax
    ? { reason: 'watchdog', why: `the movement lasted for the limit of ${limits.driveMsMax / 1000} s` }
    : undefined

const LAYERS: readonly Layer[] = [estop, fault, bump, sensors, obstacle, watchdog]
/** The layers that need no fresh reading. */
const STANDING_LAYERS: readonly Layer[] = [estop, fault, bump]

/** Returns the demand of the first layer that objects to the movement, or undefined when none does. */
export const demandOn = (state: RobotState, move: Move): Demand | undefined => first(LAYERS, state, move)

/** Does the same for a movement that still waits for its first readings. */
export const standingDemandOn = (state: RobotState, move: Move): Demand | undefined => first(STANDING_LAYERS, state, move)

/** Returns the names of the range sensors whose last reading is too old. */
export const staleSensors = (state: RobotState): string[] =>
  state.limits.sensors.map(({ name }) => name).filter((name) => state.nowMs - takenMsOf(state, name) >= state.limits.sensorMsMax)

/** Returns the time at which a layer objects unless another event arrives. No command to the motors lasts longer. */
export function trustedUntil(state: RobotState, { sinceMs }: Move): number {
  const { driveMsMax, sensorMsMax, sensors } = state.limits
  return Math.min(sinceMs + driveMsMax, ...sensors.map(({ name }) => takenMsOf(state, name) + sensorMsMax))
}

function first(layers: readonly Layer[], state: RobotState, move: Move): Demand | undefined {
  for (const layer of layers) {
    const demand = layer(state, move)
    if (demand) return demand
  }
  return undefined
}
