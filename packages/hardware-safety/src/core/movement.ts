/** The life of a movement: requested, begun, and ended, with a retreat in between when the robot bumped into something. */
import type { Demand } from './layers.ts'
import { scaled } from './pace.ts'
import type { MoveEnd, MoveRequest, RobotCommand } from './robot-event.ts'
import type { Decision, Move, RobotState } from './robot-state.ts'

/** Accepts a movement when no other one is in progress, at no more than the robot's highest speed; refuses it otherwise. */
export function requestMove(state: RobotState, asked: MoveRequest): Decision {
  const refuse = (why: string): Decision => {
    const end = { id: asked.id, reason: 'refused' as const, why, moved: 0, tookMs: 0, reversed: 0 }
    return { state, commands: [{ kind: 'ended', end } satisfies RobotCommand] }
  }
  if (state.move) return refuse('another movement is under way')
  const { velocity, amount, forMs } = asked
  const numbers = [velocity.x, velocity.y, velocity.turn, amount ?? 1, forMs ?? 1]
  if (!numbers.every(Number.isFinite) || (amount ?? 1) <= 0 || (forMs ?? 1) <= 0 || (amount === null && forMs === null))
    return refuse('the request describes no movement')
  const { maxSpeed, maxRotation } = state.limits
  const speed = Math.hypot(velocity.x, velocity.y)
  if (speed === 0 && velocity.turn === 0) return refuse('the request describes no movement')
  const by = Math.min(1, speed === 0 ? 1 : maxSpeed / speed, velocity.turn === 0 ? 1 : maxRotation / Math.abs(velocity.turn))
  const move: Move = {
    request: { ...asked, velocity: scaled(velocity, by) },
    phase: 'checking',
    heading: speed === 0 ? null : Math.atan2(velocity.y, velocity.x),
    allowed: 0,
    shortened: null,
    progress: 0,
    askedAtMs: state.nowMs,
    sinceMs: state.nowMs,
    end: null,
    from: [],
  }
  return { state: { ...state, move }, commands: [] }
}

/** Begins a movement whose check has passed; `distance` is the clearance in metres. */
export function beginMove(state: RobotState, move: Move, distance: number): { readonly state: RobotState; readonly move: Move } {
  const { velocity, amount, forMs } = move.request
  const speed = move.heading === null ? Math.abs(velocity.turn) : Math.hypot(velocity.x, velocity.y)
  const asked = amount ?? (speed * (forMs ?? 0)) / 1000
  const free = Math.max(0, distance - state.limits.minDistance)
  const begun: Move = {
    ...move,
    phase: 'moving',
    allowed: Math.min(asked, free),
    shortened: asked > free ? `an obstacle was at ${distance.toFixed(2)} m` : null,
    sinceMs: state.nowMs,
  }
  return { state: { ...state, move: begun }, move: begun }
}

/** Ends the current movement, if there is one, and halts the motors in any case. A bump begins a retreat first. */
export function endMove(state: RobotState, { reason, why }: Demand): Decision {
  const { move } = state
  const halt: RobotCommand = { kind: 'halt' }
  if (!move) return { state, commands: [halt] }
  if (move.end) {
    const reversed = move.progress
    return { state: { ...state, move: null }, commands: [halt, { kind: 'ended', end: { ...move.end, reversed } }] }
  }
  const isRefused = move.phase === 'checking' && reason !== 'stopped'
  const end: MoveEnd = {
    id: move.request.id,
    reason: isRefused ? 'refused' : reason,
    why,
    moved: move.progress,
    tookMs: move.phase === 'checking' ? 0 : state.nowMs - move.sinceMs,
    reversed: 0,
  }
  const retreat = reason === 'bump' && !isRefused ? retreatOf(state, move, end) : undefined
  if (retreat) return { state: { ...state, move: retreat }, commands: [halt] }
  return { state: { ...state, move: null }, commands: [halt, { kind: 'ended', end }] }
}

/** Returns the movement back the way the robot came, or undefined after a rotation on the spot. */
function retreatOf({ limits, pressed, nowMs }: RobotState, move: Move, end: MoveEnd): Move | undefined {
  if (move.heading === null || limits.bumpReverse === 0) return undefined
  const { x, y } = move.request.velocity
  const speed = Math.hypot(x, y)
  const velocity = scaled({ x: -x, y: -y, turn: 0 }, Math.min(speed, limits.approachSpeed) / speed)
  return {
    ...move,
    request: { ...move.request, velocity, amount: limits.bumpReverse, forMs: null },
    phase: 'retreating',
    heading: Math.atan2(velocity.y, velocity.x),
    allowed: limits.bumpReverse,
    shortened: null,
    progress: 0,
    sinceMs: nowMs,
    end,
    from: pressed,
  }
}
