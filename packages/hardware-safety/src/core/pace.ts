/** How fast a movement may be now, and for how long the motors are told to go on. */
import { clearance } from './clearance.ts'
import { trustedUntil } from './layers.ts'
import type { Velocity } from './robot-event.ts'
import { COMMAND_MS_MAX, type Move, type RobotState, type Running } from './robot-state.ts'

/** Of the highest speed: so slow that it arrives instead of coming ever nearer. */
const CREEP = 0.05
/** Steps of speed in the slow zone: not every millimetre is a new command to the motors. */
const STEPS_A_METRE = 100

export interface Pace extends Running {
  /** When it will have done what it may do. */
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

const msFor = (way: number, speed: number): number => (way / speed) * 1000

/** Metres a second: falling in the slow zone, from the speed of approach to a crawl. */
function speedAt(distance: number, isBlind: boolean, { limits }: RobotState): number {
  const { maxSpeed, blindSpeed, minDistance, slowZone, approachSpeed } = limits
  const most = isBlind ? Math.min(maxSpeed, blindSpeed) : maxSpeed
  const zone = minDistance * slowZone
  if (distance >= zone) return most
  const share = (distance - minDistance) / (zone - minDistance)
  const step = Math.floor(approachSpeed * share * STEPS_A_METRE) / STEPS_A_METRE
  return Math.min(most, Math.max(CREEP * maxSpeed, step))
}

export const scaled = ({ x, y, turn }: Velocity, by: number): Velocity => ({ x: x * by, y: y * by, turn: turn * by })
