/** A movement somebody asks for: taken up if there is none, and only as fast as the robot goes. */
import type { Decision } from './decide.ts'
import type { MoveRequest, RobotCommand } from './robot-event.ts'
import type { RobotState } from './robot-state.ts'

export function requestedMove(state: RobotState, asked: MoveRequest): Decision {
  const refuse = (why: string): Decision => {
    const end = { id: asked.id, reason: 'refused' as const, why, moved: 0, tookMs: 0, reversed: 0 }
    return { state, commands: [{ kind: 'ended', end } satisfies RobotCommand] }
  }
  if (state.move) return refuse('another movement is under way')
  const { velocity, amount, forMs } = asked
  const given = [velocity.x, velocity.y, velocity.turn, amount ?? 1, forMs ?? 1]
  if (!given.every(Number.isFinite) || (amount ?? 1) <= 0 || (forMs ?? 1) <= 0 || (amount === null && forMs === null))
    return refuse('it is no movement')
  const { maxSpeed, maxRotation } = state.limits
  const way = Math.hypot(velocity.x, velocity.y)
  if (way === 0 && velocity.turn === 0) return refuse('it is no movement')
  const by = Math.min(1, way === 0 ? 1 : maxSpeed / way, velocity.turn === 0 ? 1 : maxRotation / Math.abs(velocity.turn))
  const request: MoveRequest = { ...asked, velocity: { x: velocity.x * by, y: velocity.y * by, turn: velocity.turn * by } }
  return {
    state: {
      ...state,
      move: {
        request,
        phase: 'checking',
        heading: way === 0 ? null : Math.atan2(velocity.y, velocity.x),
        allowed: 0,
        shortened: null,
        progress: 0,
        askedAtMs: state.nowMs,
        sinceMs: state.nowMs,
        end: null,
        from: [],
      },
    },
    commands: [],
  }
}
