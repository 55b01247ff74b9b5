/**
 * The decision core, a pure function: an event and the state before it give the state after it and the commands to carry out.
 * Every layer judges the movement after every event of any kind, so no stream of events can bypass a layer.
 */
import { clearance } from './clearance.ts'
import { demandOn, staleSensors, standingDemandOn } from './layers.ts'
import { beginMove, endMove, requestMove } from './movement.ts'
import { pace } from './pace.ts'
import type { Beam, RobotCommand, RobotEvent, Velocity } from './robot-event.ts'
import { type Decision, type Move, type Reading, type RobotState, takenMsOf } from './robot-state.ts'

/** How long the check before a movement waits for readings. */
const CHECK_MS_MAX = 250
/** Every movement is forbidden for this time after a bump. */
const BUMP_HOLD_MS = 2000
/** The pause between a bump and the retreat. */
const REST_MS = 50
const BEAMS_MAX = 1024
/** The motors get a new command when less than this is left of the current one. */
const RENEW_MS = 100
/** The shortest command to the motors. */
const LEAST_MS = 1
const ROUNDING_MS = 1e-6

export function decide(before: RobotState, event: RobotEvent): Decision {
  const applied = apply(advance(before, event.atMs), event)
  const judged = judge(applied.state)
  return { state: judged.state, commands: [...applied.commands, ...judged.commands] }
}

/** Advances the state to `atMs`, assuming that the motors carried out their last command. */
function advance(state: RobotState, atMs: number): RobotState {
  const nowMs = Math.max(state.nowMs, Number.isFinite(atMs) ? atMs : state.nowMs)
  const { running, move } = state
  if (!running) return { ...state, nowMs }
  const { velocity, untilMs } = running
  const secs = Math.max(0, Math.min(nowMs, untilMs) - state.nowMs) / 1000
  const metres = Math.hypot(velocity.x, velocity.y) * secs
  const turn = Math.abs(velocity.turn) * secs
  const progress = move?.heading === null ? turn : metres
  return {
    ...state,
    nowMs,
    odometer: state.odometer + metres,
    turned: state.turned + turn,
    running: untilMs <= nowMs ? null : running,
    move: move && { ...move, progress: move.progress + progress },
  }
}

function apply(state: RobotState, event: RobotEvent): Decision {
  switch (event.kind) {
    case 'tick':
      return { state, commands: [] }
    case 'range':
      return { state: withReading(state, event.sensor, event.takenMs, event.beams), commands: [] }
    case 'bump':
      return bumped(state, event.sensor, event.isPressed)
    case 'estop': {
      if (!event.isPressed) return { state: { ...state, isEstopPressed: false }, commands: [] }
      const why = 'the emergency stop was pressed'
      const isNew = !state.isEstopPressed
      return {
        state: { ...halted(state), isEstopPressed: true, latched: why },
        commands: isNew ? [HALT, { kind: 'latched', why }] : [HALT],
      }
    }
    case 'fault':
      return { state: { ...halted(state), fault: state.fault ?? event.what }, commands: [HALT] }
    case 'move':
      return requestMove(state, event.move)
    case 'stop': {
      const { why, latches } = event
      const stopped = endMove({ ...state, running: null }, { reason: 'stopped', why })
      if (!latches) return stopped
      return { state: { ...stopped.state, latched: why }, commands: [...stopped.commands, { kind: 'latched', why }] }
    }
    case 'reset':
      if (state.isEstopPressed || state.latched === null) return { state, commands: [] }
      return { state: { ...state, latched: null }, commands: [{ kind: 'released' }] }
  }
}

const HALT: RobotCommand = { kind: 'halt' }
const halted = (state: RobotState): RobotState => ({ ...state, running: null })

/** Ignores readings of unknown sensors, readings without a valid beam, and readings no newer than the last one. */
function withReading(state: RobotState, sensor: string, takenMs: number, given: readonly Beam[]): RobotState {
  const beams = given
    .slice(0, BEAMS_MAX)
    .filter(({ bearing, spread, distance }) => Number.isFinite(bearing) && spread >= 0 && spread <= Math.PI && distance >= 0)
  const isKnown = state.limits.sensors.some(({ name }) => name === sensor)
  const atMs = Math.min(takenMs, state.nowMs)
  if (!isKnown || beams.length === 0 || !(atMs > takenMsOf(state, sensor))) return state
  const ageSecs = (state.nowMs - atMs) / 1000
  const odometer = Math.max(0, state.odometer - state.limits.maxSpeed * ageSecs)
  const turned = Math.max(0, state.turned - state.limits.maxRotation * ageSecs)
  const reading: Reading = { takenMs: atMs, odometer, turned, beams }
  return { ...state, readings: { ...state.readings, [sensor]: reading } }
}

function bumped(state: RobotState, sensor: string, isPressed: boolean): Decision {
  const wasPressed = state.pressed.includes(sensor)
  if (wasPressed === isPressed) return { state, commands: [] }
  const pressed = isPressed ? [...state.pressed, sensor] : state.pressed.filter((other) => other !== sensor)
  return {
    state: { ...state, pressed, bumpedUntilMs: state.nowMs + BUMP_HOLD_MS },
    commands: isPressed ? [{ kind: 'bumped', sensor }] : [],
  }
}

/** Asks the layers about the current movement, then ends it or commands the motors. */
function judge(state: RobotState): Decision {
  const { move } = state
  if (!move) return state.running ? { state: halted(state), commands: [HALT] } : { state, commands: [] }
  if (move.phase === 'checking') return check(state, move)
  const demand = demandOn(state, move)
  if (demand) return endMove(halted(state), demand)
  if (move.phase === 'retreating' && state.nowMs - move.sinceMs < REST_MS) return { state: halted(state), commands: [] }
  return drive(state, move)
}

/** The check before a movement, which needs a reading of every sensor that is younger than the request. */
function check(state: RobotState, move: Move): Decision {
  const demand = standingDemandOn(state, move)
  if (demand) return endMove(state, demand)
  const isFresh = state.limits.sensors.every(({ name }) => takenMsOf(state, name) >= move.askedAtMs)
  if (!isFresh) {
    if (state.nowMs - move.askedAtMs < CHECK_MS_MAX) return { state, commands: [] }
    const silent = staleSensors(state)
    const why = silent.length > 0 ? `there is no fresh reading of ${silent.join(' and ')}` : 'the sensors did not answer in time'
    return endMove(state, { reason: 'sensors', why })
  }
  const { heading, request } = move
  const free = heading === null ? Number.POSITIVE_INFINITY : clearance(state, heading, request.velocity.turn).distance
  const begun = beginMove(state, move, free)
  const refusal = demandOn(begun.state, begun.move)
  if (refusal) return endMove(state, refusal)
  const driven = drive(begun.state, begun.move)
  const began: RobotCommand = { kind: 'began', id: move.request.id, amount: begun.move.allowed, shortened: begun.move.shortened }
  return { state: driven.state, commands: [began, ...driven.commands] }
}

function drive(state: RobotState, move: Move): Decision {
  const { running, nowMs } = state
  const { velocity, untilMs, overMs } = pace(state, move)
  if (overMs - nowMs < LEAST_MS)
    return endMove(halted(state), move.shortened === null ? { reason: 'done', why: '' } : { reason: 'obstacle', why: move.shortened })
  // A layer objects within this millisecond and gives its reason at the next event.
  if (untilMs - nowMs < LEAST_MS) return { state: halted(state), commands: [HALT] }
  if (running && isSame(running.velocity, velocity) && isLongEnough(running.untilMs, untilMs, nowMs)) return { state, commands: [] }
  // Rounds down, so that a command never lasts longer than it may.
  const forMs = Math.floor(untilMs - nowMs)
  return { state: { ...state, running: { velocity, untilMs: nowMs + forMs } }, commands: [{ kind: 'run', velocity, forMs }] }
}

const isSame = (one: Velocity, other: Velocity): boolean => one.x === other.x && one.y === other.y && one.turn === other.turn

/** True when the current command ends no later than it may, and not so soon that the motors would stop before the next one. */
const isLongEnough = (currentMs: number, untilMs: number, nowMs: number): boolean =>
  currentMs <= untilMs + ROUNDING_MS && currentMs - nowMs >= Math.min(RENEW_MS, untilMs - nowMs - LEAST_MS)
