import { describe, expect, test } from 'vitest'
import { BUMPERS } from '../sim/sim-body.ts'
import { simulated } from '../testing/simulated.ts'

/** A room so large that its walls are out of reach. */
const HALL = { room: [40, 40] }
const MIN_DISTANCE = 0.3

describe('the check before a movement', () => {
  test('lets the robot drive the whole distance of a free path', async () => {
    const { move, body } = await simulated({ sim: HALL })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'done', why: '' })
    expect(body.pose.x).toBeCloseTo(1, 2)
  })

  test.each([
    ['ahead', { x: 0.5 }, [2, 0, 0.5], { x: 1.2, y: 0 }],
    ['back', { x: -0.5 }, [-2, 0, 0.5], { x: -1.2, y: 0 }],
    ['left', { y: 0.5 }, [0, 2, 0.5], { x: 0, y: 1.2 }],
    ['right', { y: -0.5 }, [0, -2, 0.5], { x: 0, y: -1.2 }],
  ] as const)('shortens a way with an obstacle %s', async (_, velocity, obstacle, end) => {
    const { move, body, sent } = await simulated({ sim: { ...HALL, obstacles: [obstacle] } })
    const ended = await move(velocity, 3)
    expect(ended).toMatchObject({ reason: 'obstacle', why: expect.stringMatching(/^an obstacle (?:is|was) at \d\.\d\d m$/) })
    expect(sent).toContainEqual({
      kind: 'began',
      id: 1,
      amount: expect.closeTo(1.2, 1),
      shortened: expect.stringContaining('an obstacle was at'),
    })
    expect(body.pose.x).toBeCloseTo(end.x, 1)
    expect(body.pose.y).toBeCloseTo(end.y, 1)
    expect(2 - 0.5 - Math.hypot(body.pose.x, body.pose.y)).toBeGreaterThanOrEqual(MIN_DISTANCE - 1e-3)
  })

  test('ignores an obstacle in another direction', async () => {
    const { move } = await simulated({ sim: { ...HALL, obstacles: [[0.6, 0, 0.35]] } })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', moved: 0 })
    expect(await move({ x: -0.5 }, 1)).toMatchObject({ reason: 'done' })
  })

  test('lets the robot pass an obstacle next to the way', async () => {
    const { move } = await simulated({ sim: { ...HALL, obstacles: [[1, 0.45, 0.2]] } })
    expect(await move({ x: 0.5 }, 2)).toMatchObject({ reason: 'done' })
  })

  test('does not compare degrees with metres', async () => {
    const { move, body } = await simulated({ sim: { ...HALL, obstacles: [[0.6, 0, 0.35]] } })
    expect(await move({ turn: 1 }, Math.PI / 2)).toMatchObject({ reason: 'done' })
    expect(body.pose.angle).toBeCloseTo(Math.PI / 2, 2)
  })

  test('refuses a movement before the first reading', async () => {
    const { move, notes } = await simulated({ sim: { ...HALL, dropout: 1 } })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', why: 'there is no fresh reading of lidar' })
    expect(notes.map(({ what }) => what)).not.toContain('run')
  })

  test('refuses a second movement while one is under way', async () => {
    const { kernel, clock, sent } = await simulated({ sim: HALL })
    const velocity = { x: 0.5, y: 0, turn: 0 }
    kernel.handle({ kind: 'move', move: { id: 1, velocity, amount: 5, forMs: null } })
    await clock.advance(100)
    kernel.handle({ kind: 'move', move: { id: 2, velocity, amount: 5, forMs: null } })
    expect(sent).toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 2, reason: 'refused' }) }))
    expect(sent).not.toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 1 }) }))
  })
})

describe('a movement', () => {
  test('slows down before an obstacle', async () => {
    const { kernel, clock, body } = await simulated({ sim: { ...HALL, obstacles: [[2, 0, 0.5]] } })
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 3, forMs: null } })
    await clock.advance(1000)
    const fast = body.pose.x
    await clock.advance(1000)
    const then = body.pose.x - fast
    expect(fast).toBeGreaterThan(0.4)
    expect(then).toBeLessThan(0.3)
  })

  test('stops when the sensors fall silent', async () => {
    const { kernel, clock, body, sent } = await simulated({ sim: HALL })
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    body.poll = () => undefined
    await clock.advance(600)
    expect(sent).toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ reason: 'sensors' }) }))
  })

  test('backs off after a bump, and nothing moves for two seconds', async () => {
    const { move, clock, sent, body } = await simulated({ sim: { ...HALL, glass: [[1, 0, 0.2]] } })
    const end = await move({ x: 0.3 }, 2)
    expect(sent).toContainEqual({ kind: 'bumped', sensor: BUMPERS.front })
    expect(end).toMatchObject({ reason: 'bump', why: `something touches ${BUMPERS.front}` })
    expect(end.reversed).toBeCloseTo(0.15, 2)
    expect(body.pose.x).toBeCloseTo(0.65 - 0.15, 1)
    expect(await move({ x: -0.3 }, 0.1)).toMatchObject({ reason: 'refused', why: 'the robot bumped into something just now' })
    await clock.advance(2500)
    expect(await move({ x: -0.3 }, 0.1)).toMatchObject({ reason: 'done' })
  })

  test('backs off only as far as that is safe', async () => {
    const { move } = await simulated({ sim: { ...HALL, glass: [[0.5, 0, 0.2]], obstacles: [[-0.6, 0, 0.25]] } })
    const end = await move({ x: 0.3 }, 2)
    expect(end.reason).toBe('bump')
    expect(end.reversed).toBeLessThan(0.22)
  })

  test('ends at once when a stop is requested', async () => {
    const { kernel, clock, sent, notes } = await simulated({ sim: HALL })
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    kernel.handle({ kind: 'stop', id: 2, why: 'a stop was requested' })
    expect(notes.at(-1)?.what).toBe('halt')
    expect(sent).toContainEqual(
      expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 1, reason: 'stopped', why: 'a stop was requested' }) }),
    )
    await clock.advance(0)
    expect(sent).toContainEqual({ kind: 'stopped', id: 2 })
  })
})

describe('the kernel', () => {
  test('ends a movement that takes too long', async () => {
    const { move } = await simulated({ sim: HALL, safety: { max_drive_duration: 2 } })
    const end = await move({ x: 0.5 }, 10)
    expect(end).toMatchObject({ reason: 'watchdog' })
    expect(end.tookMs).toBeLessThan(2050)
  })

  test('keeps an emergency stop in force until it is reset', async () => {
    const { move, kernel, look, sent, clock } = await simulated({ sim: HALL }, 'the emergency stop was pressed')
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', why: expect.stringContaining('waits for a person') })
    expect(await look()).toMatchObject({ latched: 'the emergency stop was pressed' })
    kernel.handle({ kind: 'reset', id: 99 })
    await clock.advance(50)
    expect(sent).toContainEqual({ kind: 'released' })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'done' })
  })

  test('reads the emergency stop again before a reset', async () => {
    const { kernel, body, report, sent } = await simulated({ sim: HALL })
    report({ kind: 'estop', isPressed: true })
    body.poll = () => report({ kind: 'estop', isPressed: false })
    kernel.handle({ kind: 'reset', id: 1 })
    expect(sent).toContainEqual({ kind: 'released' })
  })

  test('reports a failed part once, after the end of the movement', async () => {
    const { kernel, clock, sent, body, report } = await simulated({ sim: HALL })
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    report({ kind: 'fault', what: 'the drive is gone' })
    report({ kind: 'fault', what: 'the drive takes no commands' })
    expect(sent.slice(-2)).toEqual([
      { kind: 'ended', end: expect.objectContaining({ reason: 'fault', why: 'the drive is gone' }) },
      { kind: 'faulted', why: 'the drive is gone' },
    ])
    const { x } = body.pose
    await clock.advance(500)
    expect(body.pose.x).toBe(x)
  })

  test('ignores requests while it closes', async () => {
    const { kernel, notes, clock, sent } = await simulated({ sim: HALL })
    const closing = kernel.close('the safety process received SIGTERM')
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    await closing
    expect(notes.map(({ what }) => what)).not.toContain('run')
    expect(sent).toEqual([])
  })

  test('halts the motors at its start and when it closes', async () => {
    const { kernel, clock, notes } = await simulated({ sim: HALL })
    expect(notes.map(({ what }) => what)).toEqual(['halt'])
    kernel.handle({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    await kernel.close('the daemon is gone')
    expect(notes.slice(-2).map(({ what }) => what)).toEqual(['halt', 'closed'])
  })

  test('does not poll the sensors at rest', async () => {
    const { move, clock } = await simulated({ sim: HALL })
    await move({ x: 0.5 }, 0.2)
    await clock.advance(100)
    expect(clock.sleeping).toBe(0)
  })
})

test('the simulator depends on its seed alone', async () => {
  const run = async (seed: number) => {
    const { look } = await simulated({ sim: { seed, noise: 0.05, dropout: 0.1 } })
    return (await look()).ways
  }
  expect(await run(1)).toEqual(await run(1))
  expect(await run(1)).not.toEqual(await run(2))
})
