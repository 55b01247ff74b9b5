/** The layers of safety: each looks at a movement and says why it may not go on, if it may not (§2.7 rule 7). */
import { clearance } from './clearance.ts'
import type { EndReason } from './robot-event.ts'
import type { Move, RobotState } from './robot-state.ts'

export interface Demand {
  readonly reason: EndReason
  /** As in `MoveEnd`. */
  readonly why: string
}

/** Metres: an obstacle this near the least distance is at it. */
const AT_LIMIT = 0.005

type Layer = (state: RobotState, move: Move) => Demand | undefined

const estop: Layer = ({ latched, isEstopPressed }) => {
  if (isEstopPressed) return { reason: 'estop', why: 'the emergency stop is pressed' }
  return latched === null ? undefined : { reason: 'estop', why: `it was stopped (${latched}) and waits for a person to reset it` }
}

const fault: Layer = ({ fault: what }) => (what === null ? undefined : { reason: 'fault', why: what })

const bump: Layer = ({ pressed, bumpedUntilMs, nowMs }, { phase, from }) => {
  const touching = pressed.filter((sensor) => !from.includes(sensor))
  if (touching.length > 0) return { reason: 'bump', why: `something touches ${touching.join(' and ')}` }
  const isHeld = phase !== 'retreating' && (pressed.length > 0 || nowMs < bumpedUntilMs)
  return isHeld ? { reason: 'bump', why: 'it bumped into something just now' } : undefined
}

const sensors: Layer = (state, { heading }) => {
  const stale = staleSensors(state)
  if (stale.length > 0) return { reason: 'sensors', why: `there is no fresh reading of ${stale.join(' and ')}` }
  if (heading === null && state.limits.sensors.length > 0) return undefined
  const { sight } = heading === null ? { sight: 'blind' as const } : clearance(state, heading)
  if (sight === 'unseen') return { reason: 'sensors', why: 'the sensors see nothing of the way' }
  return sight === 'blind' && state.limits.blindSpeed === 0 ? { reason: 'sensors', why: 'no sensor looks there' } : undefined
}

const obstacle: Layer = (state, { heading, request }) => {
  if (heading === null) return undefined
  const { distance } = clearance(state, heading, request.velocity.turn)
  const isNear = distance - state.limits.minDistance < AT_LIMIT
  return isNear ? { reason: 'obstacle', why: `an obstacle is at ${distance.toFixed(2)} m` } : undefined
}

const watchdog: Layer = ({ nowMs, limits }, { sinceMs, phase }) =>
  phase !== 'checking' && nowMs - sinceMs >= limits.driveMsMax
    ? { reason: 'watchdog', why: `it moved for ${limits.driveMsMax / 1000} s, which is the most` }
    : undefined

const LAYERS: readonly Layer[] = [estop, fault, bump, sensors, obstacle, watchdog]
/** Those that need no fresh reading. */
const STANDING_LAYERS: readonly Layer[] = [estop, fault, bump]

export const demandOn = (state: RobotState, move: Move): Demand | undefined => first(LAYERS, state, move)

/** Of a movement that waits for its first readings. */
export const standingDemandOn = (state: RobotState, move: Move): Demand | undefined => first(STANDING_LAYERS, state, move)

export const staleSensors = ({ limits, sights, nowMs }: RobotState): string[] =>
  limits.sensors
    .filter(({ name }) => nowMs - (sights[name]?.takenMs ?? Number.NEGATIVE_INFINITY) >= limits.sensorMsMax)
    .map(({ name }) => name)

/** Until when no layer objects if nothing more is heard: the motors are told to run no longer. */
export function trustedUntil({ limits, sights }: RobotState, { sinceMs }: Move): number {
  const readings = limits.sensors.map(({ name }) => (sights[name]?.takenMs ?? Number.NEGATIVE_INFINITY) + limits.sensorMsMax)
  return Math.min(sinceMs + limits.driveMsMax, ...readings)
}

function first(layers: readonly Layer[], state: RobotState, move: Move): Demand | undefined {
  for (const layer of layers) {
    const demand = layer(state, move)
    if (demand) return demand
  }
  return undefined
}
