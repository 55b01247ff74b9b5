/** Computes the permitted speed of a movement at this moment, and how long the motors may keep running. */
import { clearance } from './clearance.ts'
import { trustedUntil } from './layers.ts'
import type { Velocity } from './robot-event.ts'
import { COMMAND_MS_MAX, type Move, type RobotState, type Running } from './robot-state.ts'

/** The lowest speed in the slow zone, as a share of the highest. Without it the robot would slow down for ever and never arrive. */
const CREEP = 0.05
/** Speeds in the slow zone are rounded down to 1/100 m/s, so that not every millimetre needs a new command to the motors. */
const SPEED_STEPS = 100

export interface Pace extends Running {
  /** The time at which the movement reaches its allowed distance. */
  readonly overMs: number
}

export function pace(state: RobotState, move: Move): Pace {
  const { nowMs, limits } = state
  const { velocity, forMs } = move.request
  const { distance, sight } = move.heading === null ? FREE : clearance(state, move.heading, velocity.turn)
  const full = move.heading === null ? Math.abs(velocity.turn) : Math.hypot(velocity.x, velocity.y)
  const speed = move.heading === null ? full : Math.min(full, speedAt(distance, sight === 'blind', state))
  const overMs = Math.min(
    nowMs + msFor(move.allowed - move.progress, speed),
    move.phase === 'moving' && forMs !== null ? move.sinceMs + forMs : Number.POSITIVE_INFINITY,
  )
  const untilMs = Math.min(nowMs + COMMAND_MS_MAX, overMs, trustedUntil(state, move), nowMs + msFor(distance - limits.minDistance, speed))
  return { velocity: speed === full ? velocity : scaled(velocity, speed / full), untilMs, overMs }
}

const FREE = { distance: Number.POSITIVE_INFINITY, sight: 'seen' } as const

const msFor = (distance: number, speed: number): number => (distance / speed) * 1000

/** Returns metres per second. In the slow zone the speed falls with the distance, from the approach speed to a creep. */
function speedAt(distance: number, isBlind: boolean, { limits }: RobotState): number {
  const { maxSpeed, blindSpeed, minDistance, slowZone, approachSpeed } = limits
  const speedMax = isBlind ? Math.min(maxSpeed, blindSpeed) : maxSpeed
  const zone = minDistance * slowZone
  if (distance >= zone) return speedMax
  const share = (distance - minDistance) / (zone - minDistance)
  const step = Math.floor(approachSpeed * share * SPEED_STEPS) / SPEED_STEPS
  return Math.min(speedMax, Math.max(CREEP * maxSpeed, step))
}

export const scaled = ({ x, y, turn }: Velocity, by: number): Velocity => ({ x: x * by, y: y * by, turn: turn * by })
