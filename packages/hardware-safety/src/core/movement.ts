/** How a movement begins, and how it ends: a bump is backed off from before the end is told. */
import type { Decision } from './decide.ts'
import type { Demand } from './layers.ts'
import { scaled } from './pace.ts'
import type { MoveEnd, RobotCommand } from './robot-event.ts'
import type { Move, RobotState } from './robot-state.ts'

/** `distance`: how far the way is free. */
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

/** Ends what is under way, if anything is; the motors are told to halt in any case. */
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

/** Back the way it came; what turned on the spot stays where it is. */
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
