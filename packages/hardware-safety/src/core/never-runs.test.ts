import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LIMITS } from '../testing/limits.ts'
import { Oracle } from '../testing/oracle.ts'
import { decide } from './decide.ts'
import type { Beam, RobotEvent } from './robot-event.ts'
import type { Decision } from './robot-state.ts'
import { initialState, type RobotLimits, type RobotState } from './robot-state.ts'

type Decide = (state: RobotState, event: RobotEvent) => Decision

/** An event `afterMs` after the one before. */
type Happening = { readonly afterMs: number } & (
  | { readonly kind: 'tick' | 'reset' | 'fault' }
  | { readonly kind: 'stop'; readonly latches: boolean }
  | { readonly kind: 'range'; readonly sensor: string; readonly lateMs: number; readonly beams: readonly Beam[] }
  | { readonly kind: 'bump'; readonly sensor: string; readonly isPressed: boolean }
  | { readonly kind: 'estop'; readonly isPressed: boolean }
  | { readonly kind: 'move'; readonly x: number; readonly y: number; readonly turn: number; readonly amount: number | null }
)

const TWO_SENSORS = [
  { name: 'lidar', bearing: 0, halfAngle: Math.PI },
  { name: 'sonar', bearing: 0, halfAngle: 0.3 },
]
const limits: fc.Arbitrary<RobotLimits> = fc.record({
  maxSpeed: fc.constantFrom(0.2, 0.5, 2),
  maxRotation: fc.constantFrom(0.5, 1),
  width: fc.constantFrom(0, 0.3, 0.6),
  minDistance: fc.constantFrom(0.1, 0.3),
  slowZone: fc.constantFrom(1, 3),
  approachSpeed: fc.constantFrom(0.1, 0.3),
  blindSpeed: fc.constantFrom(0, 0.1),
  driveMsMax: fc.constantFrom(400, 3000),
  sensorMsMax: fc.constantFrom(60, 500),
  bumpReverse: fc.constantFrom(0, 0.15),
  sensors: fc.constantFrom(TWO_SENSORS, TWO_SENSORS.slice(0, 1), TWO_SENSORS.slice(1), []),
})

const soon = fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 0, max: 30 }) }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 900 }) })
const distance = fc.oneof(
  { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
  { weight: 2, arbitrary: fc.double({ min: 0.5, max: 5, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: 0, max: 0.5, noNaN: true }) },
)
const AROUND = Array.from({ length: 24 }, (_, index) => (index * Math.PI) / 12)
/** A full scan at one distance except for one beam, with some beams lost. */
const scan = fc
  .record({ far: distance, near: distance, at: fc.nat(23), lost: fc.subarray(AROUND, { maxLength: 6 }) })
  .map(({ far, near, at, lost }) =>
    AROUND.filter((bearing) => !lost.includes(bearing)).map((bearing, index) => ({
      bearing,
      spread: 0.131,
      distance: index === at ? near : far,
    })),
  )
const cone = distance.map((nearest) => [{ bearing: 0, spread: 0.26, distance: nearest }])
const lateMs = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 0, max: 600 }) })
const isPressed = fc.boolean()
const sensor = fc.constantFrom('bump-5', 'bump-6')
const weighted = (weight: number, arbitrary: fc.Arbitrary<Happening | readonly Happening[]>) => ({ weight, arbitrary })
const lidar = fc.record({ kind: fc.constant('range' as const), afterMs: soon, sensor: fc.constant('lidar'), lateMs, beams: scan })
const sonar = fc.record({ kind: fc.constant('range' as const), afterMs: soon, sensor: fc.constant('sonar'), lateMs, beams: cone })
/** Obstacles at one distance all around for a while, with some readings missing. */
const steady = fc
  .record({
    far: fc.constantFrom(0.35, 0.6, 1, 4, 4),
    steps: fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 60 }), reads: fc.boolean() }), { minLength: 2, maxLength: 25 }),
  })
  .map(({ far, steps }) =>
    steps.flatMap(({ afterMs, reads }, index): Happening[] => [{ kind: 'tick', afterMs }, ...(reads || index < 2 ? looks(far) : [])]),
  )
const looks = (far: number): Happening[] => [
  { kind: 'range', afterMs: 0, sensor: 'lidar', lateMs: 0, beams: AROUND.map((bearing) => ({ bearing, spread: 0.131, distance: far })) },
  { kind: 'range', afterMs: 0, sensor: 'sonar', lateMs: 0, beams: [{ bearing: 0, spread: 0.26, distance: far }] },
]
const move = fc.record({
  kind: fc.constant('move' as const),
  afterMs: soon,
  x: fc.constantFrom(0, 0.5, 0.5, 0.5, 0.5, 5, -0.3),
  y: fc.constantFrom(0, 0, 0, 0.2),
  turn: fc.constantFrom(0, 0, 0.5, -2),
  amount: fc.constantFrom(0.05, 0.5, 3, null),
})
const happenings = fc
  .array(
    fc.oneof(
      weighted(4, lidar),
      weighted(4, sonar),
      weighted(12, steady),
      weighted(3, fc.record({ kind: fc.constant('tick' as const), afterMs: soon })),
      weighted(8, move),
      weighted(2, fc.record({ kind: fc.constant('bump' as const), afterMs: soon, sensor, isPressed })),
      weighted(1, fc.record({ kind: fc.constant('estop' as const), afterMs: soon, isPressed })),
      weighted(3, fc.record({ kind: fc.constant('reset' as const), afterMs: soon })),
      weighted(1, fc.record({ kind: fc.constant('stop' as const), afterMs: soon, latches: fc.boolean() })),
    ),
    { minLength: 5, maxLength: 40, size: 'max' },
  )
  .chain((some) => fc.tuple(fc.constant(some.flat()), fc.option(fc.nat(100), { freq: 20 })))
  .map(([all, broken]): readonly Happening[] => (broken === null ? all : all.toSpliced(broken, 0, { kind: 'fault', afterMs: 1 })))

/** Curves past an obstacle that is next to the way at first, with few readings afterwards. */
const curves = fc
  .record({
    near: fc.double({ min: 0.3, max: 1.2, noNaN: true }),
    at: fc.nat(23),
    turn: fc.constantFrom(-1, -0.5, 0.5, 1),
    steps: fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 150 }), reads: fc.boolean() }), { maxLength: 20 }),
  })
  .map(({ near, at, turn, steps }): readonly Happening[] => {
    const beams = AROUND.map((bearing, index) => ({ bearing, spread: 0.131, distance: index === at ? near : 5 }))
    const looking = { kind: 'range', afterMs: 1, sensor: 'lidar', lateMs: 0, beams } as const
    const moving = { kind: 'move', afterMs: 0, x: 0.5, y: 0, turn, amount: 3 } as const
    return [moving, looking, ...steps.map(({ afterMs, reads }) => (reads ? { ...looking, afterMs } : { kind: 'tick' as const, afterMs }))]
  })
const CURVING: RobotLimits = { ...LIMITS, sensorMsMax: 500 }

const eventOf = (what: Happening, atMs: number, id: number): RobotEvent => {
  switch (what.kind) {
    case 'range':
      return { kind: 'range', atMs, sensor: what.sensor, takenMs: atMs - what.lateMs, beams: what.beams }
    case 'bump':
      return { kind: 'bump', atMs, sensor: what.sensor, isPressed: what.isPressed }
    case 'estop':
      return { kind: 'estop', atMs, isPressed: what.isPressed }
    case 'move':
      return {
        kind: 'move',
        atMs,
        move: {
          id,
          velocity: { x: what.x, y: what.y, turn: what.turn },
          amount: what.amount,
          forMs: what.amount === null ? 700 : null,
        },
      }
    case 'stop':
      return { kind: 'stop', atMs, why: 'a stop was requested', ...(what.latches && { latches: true }) }
    case 'fault':
      return { kind: 'fault', atMs, what: 'the drive does not answer' }
    default:
      return { kind: what.kind, atMs }
  }
}

/** Feeds the events to `by` and returns the first violation, with the driven distance and the reasons why movements ended. */
function watch(
  of: RobotLimits,
  happened: readonly Happening[],
  by: Decide,
): { readonly wrong: string | undefined; readonly metres: number; readonly reasons: readonly string[] } {
  const oracle = new Oracle(of)
  const reasons: string[] = []
  let state = initialState(of, 0)
  let nowMs = 0
  for (const [id, what] of happened.entries()) {
    nowMs += what.afterMs
    const before = oracle.passed(nowMs)
    const event = eventOf(what, nowMs, id)
    const decision = by(state, event)
    state = decision.state
    for (const command of decision.commands) if (command.kind === 'ended') reasons.push(command.end.reason)
    const wrong = before ?? oracle.answered(event, decision.commands)
    if (wrong) return { wrong, metres: oracle.metres, reasons }
  }
  return { wrong: oracle.passed(nowMs + 60_000), metres: oracle.metres, reasons }
}

const RUNS = effort(4000)
const property = (by: Decide) => fc.property(limits, happenings, (of, happened) => watch(of, happened, by).wrong === undefined)

test('the motors never run while a layer demands a stop', () => {
  const { counterexample } = fc.check(property(decide), { numRuns: RUNS, seed: 7 })
  expect(counterexample && { wrong: watch(...counterexample, decide).wrong, counterexample: JSON.stringify(counterexample) }).toBeNull()
})

test('an obstacle next to a curve stops the robot', () => {
  const inCurves = fc.property(curves, (happened) => watch(CURVING, happened, decide).wrong === undefined)
  const { counterexample } = fc.check(inCurves, { numRuns: RUNS, seed: 7 })
  expect(counterexample && { wrong: watch(CURVING, ...counterexample, decide).wrong, happened: JSON.stringify(counterexample) }).toBeNull()
  expect(
    fc.sample(curves, { numRuns: 100, seed: 7 }).filter((happened) => watch(CURVING, happened, decide).metres > 0.1).length,
  ).toBeGreaterThan(20)
})

test('the generated events move the robot and end movements for every reason', () => {
  const tried = fc.sample(fc.tuple(limits, happenings), { numRuns: 1000, seed: 7 }).map(([of, happened]) => watch(of, happened, decide))
  expect(tried.filter(({ metres }) => metres > 0.02).length).toBeGreaterThan(150)
  const reasons = new Set(tried.flatMap((one) => one.reasons))
  for (const reason of ['done', 'refused', 'stopped', 'estop', 'fault', 'bump', 'sensors', 'obstacle', 'watchdog'])
    expect(reasons).toContain(reason)
})

describe('the oracle notices a robot', () => {
  const altered =
    (alter: (event: RobotEvent) => RobotEvent): Decide =>
    (state, event) =>
      decide(state, alter(event))
  const answering =
    (alter: (decision: Decision, before: RobotState) => Decision): Decide =>
    (state, event) =>
      alter(decide(state, event), state)
  const limited =
    (change: Partial<RobotLimits>): Decide =>
    (state, event) => {
      const { state: next, commands } = decide({ ...state, limits: { ...state.limits, ...change } }, event)
      return { state: { ...next, limits: state.limits }, commands }
    }
  const planted: Readonly<Record<string, Decide>> = {
    'that ignores its emergency stop': altered((event) => (event.kind === 'estop' ? { kind: 'tick', atMs: event.atMs } : event)),
    'whose emergency stop does not latch': answering(({ state, commands }) => ({ state: { ...state, latched: null }, commands })),
    'whose operators cannot stop it until a reset': altered((event) =>
      event.kind === 'stop' ? { kind: 'stop', atMs: event.atMs, why: event.why } : event,
    ),
    'that resets while the emergency stop is pressed': altered((event) =>
      event.kind === 'estop' ? { ...event, isPressed: false } : event,
    ),
    'that never halts its motors': answering(({ state, commands }) => ({
      state,
      commands: commands.filter(({ kind }) => kind !== 'halt'),
    })),
    'whose motor commands last too long': answering(({ state, commands }) => ({
      state,
      commands: commands.map((command) => (command.kind === 'run' ? { ...command, forMs: command.forMs + 100 } : command)),
    })),
    'that treats late readings as fresh': altered((event) => (event.kind === 'range' ? { ...event, takenMs: event.atMs } : event)),
    'that moves without fresh readings': limited({ sensorMsMax: 10_000 }),
    'without a watchdog': limited({ driveMsMax: 1_000_000 }),
    'that comes too near to obstacles': limited({ minDistance: 0.05 }),
    'that ignores its width': limited({ width: 0 }),
    'that moves where no sensor looks': limited({ blindSpeed: 0.5 }),
    'that backs off too far': limited({ bumpReverse: 1 }),
    'that ignores its bump sensors': altered((event) => (event.kind === 'bump' ? { kind: 'tick', atMs: event.atMs } : event)),
    'that drives too fast': limited({ maxSpeed: 9 }),
    'that does not count the driven distance': answering(({ state, commands }) => ({ state: { ...state, odometer: 0 }, commands })),
  }

  test.each(Object.keys(planted))('%s', (name) => {
    const by = planted[name] ?? decide
    expect(fc.check(property(by), { numRuns: RUNS, seed: 7, endOnFailure: true }).failed).toBe(true)
  })
})
