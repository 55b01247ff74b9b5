import { describe, expect, test } from 'vitest'
import { BUMPERS } from '../sim/sim-body.ts'
import { simulated } from '../testing/simulated.ts'

/** Walls are out of the way. */
const HALL = { room: [40, 40] }
const MIN_DISTANCE = 0.3

describe('§2.7 rule 7, layer 1: before a movement', () => {
  test('a way that is free is gone to its end', async () => {
    const { move, body } = await simulated({ sim: HALL })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'done', why: '' })
    expect(body.pose.x).toBeCloseTo(1, 2)
  })

  test.each([
    ['ahead', { x: 0.5 }, [2, 0, 0.5], { x: 1.2, y: 0 }],
    ['back', { x: -0.5 }, [-2, 0, 0.5], { x: -1.2, y: 0 }],
    ['left', { y: 0.5 }, [0, 2, 0.5], { x: 0, y: 1.2 }],
    ['right', { y: -0.5 }, [0, -2, 0.5], { x: 0, y: -1.2 }],
  ] as const)('a way that is not free %s is shortened to what is', async (_, velocity, obstacle, end) => {
    const { move, body, told } = await simulated({ sim: { ...HALL, obstacles: [obstacle] } })
    const ended = await move(velocity, 3)
    expect(ended).toMatchObject({ reason: 'obstacle', why: expect.stringMatching(/^an obstacle (?:is|was) at \d\.\d\d m$/) })
    expect(told).toContainEqual({
      kind: 'began',
      id: 1,
      amount: expect.closeTo(1.2, 1),
      shortened: expect.stringContaining('an obstacle was at'),
    })
    expect(body.pose.x).toBeCloseTo(end.x, 1)
    expect(body.pose.y).toBeCloseTo(end.y, 1)
    expect(2 - 0.5 - Math.hypot(body.pose.x, body.pose.y)).toBeGreaterThanOrEqual(MIN_DISTANCE - 1e-3)
  })

  test('what is in the way of one direction is not in that of another', async () => {
    const { move } = await simulated({ sim: { ...HALL, obstacles: [[0.6, 0, 0.35]] } })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', moved: 0 })
    expect(await move({ x: -0.5 }, 1)).toMatchObject({ reason: 'done' })
  })

  test('what stands beside the way is passed', async () => {
    const { move } = await simulated({ sim: { ...HALL, obstacles: [[1, 0.45, 0.2]] } })
    expect(await move({ x: 0.5 }, 2)).toMatchObject({ reason: 'done' })
  })

  test('degrees are not compared with metres', async () => {
    const { move, body } = await simulated({ sim: { ...HALL, obstacles: [[0.6, 0, 0.35]] } })
    expect(await move({ turn: 1 }, Math.PI / 2)).toMatchObject({ reason: 'done' })
    expect(body.pose.angle).toBeCloseTo(Math.PI / 2, 2)
  })

  test('nothing moves before the sensors have told something', async () => {
    const { move, notes } = await simulated({ sim: { ...HALL, dropout: 1 } })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', why: 'there is no fresh reading of lidar' })
    expect(notes.map(({ what }) => what)).not.toContain('run')
  })

  test('another movement is refused while one is under way', async () => {
    const { kernel, clock, told } = await simulated({ sim: HALL })
    const velocity = { x: 0.5, y: 0, turn: 0 }
    kernel.take({ kind: 'move', move: { id: 1, velocity, amount: 5, forMs: null } })
    await clock.advance(100)
    kernel.take({ kind: 'move', move: { id: 2, velocity, amount: 5, forMs: null } })
    expect(told).toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 2, reason: 'refused' }) }))
    expect(told).not.toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 1 }) }))
  })
})

describe('§2.7 rule 7, layers 2 and 3: while it moves', () => {
  test('it slows down before an obstacle', async () => {
    const { kernel, clock, body } = await simulated({ sim: { ...HALL, obstacles: [[2, 0, 0.5]] } })
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 3, forMs: null } })
    await clock.advance(1000)
    const fast = body.pose.x
    await clock.advance(1000)
    const then = body.pose.x - fast
    expect(fast).toBeGreaterThan(0.4)
    expect(then).toBeLessThan(0.3)
  })

  test('sensors that fall silent stop it', async () => {
    const { kernel, clock, body, told } = await simulated({ sim: HALL })
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    body.poll = () => undefined
    await clock.advance(600)
    expect(told).toContainEqual(expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ reason: 'sensors' }) }))
  })

  test('what it bumps into is backed off from, and nothing moves for two seconds', async () => {
    const { move, clock, told, body } = await simulated({ sim: { ...HALL, glass: [[1, 0, 0.2]] } })
    const end = await move({ x: 0.3 }, 2)
    expect(told).toContainEqual({ kind: 'bumped', sensor: BUMPERS.front })
    expect(end).toMatchObject({ reason: 'bump', why: `something touches ${BUMPERS.front}` })
    expect(end.reversed).toBeCloseTo(0.15, 2)
    expect(body.pose.x).toBeCloseTo(0.65 - 0.15, 1)
    expect(await move({ x: -0.3 }, 0.1)).toMatchObject({ reason: 'refused', why: 'it bumped into something just now' })
    await clock.advance(2500)
    expect(await move({ x: -0.3 }, 0.1)).toMatchObject({ reason: 'done' })
  })

  test('it backs off only as far as that is safe', async () => {
    const { move } = await simulated({ sim: { ...HALL, glass: [[0.5, 0, 0.2]], obstacles: [[-0.6, 0, 0.25]] } })
    const end = await move({ x: 0.3 }, 2)
    expect(end.reason).toBe('bump')
    expect(end.reversed).toBeLessThan(0.22)
  })

  test('a stop is obeyed at once, and in the check before a movement too', async () => {
    const { kernel, clock, told, notes } = await simulated({ sim: HALL })
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    kernel.take({ kind: 'stop', id: 2, why: 'a stop was asked for' })
    expect(notes.at(-1)?.what).toBe('halt')
    expect(told).toContainEqual(
      expect.objectContaining({ kind: 'ended', end: expect.objectContaining({ id: 1, reason: 'stopped', why: 'a stop was asked for' }) }),
    )
    await clock.advance(0)
    expect(told).toContainEqual({ kind: 'stopped', id: 2 })
  })
})

describe('§2.7 rule 7, layers 4 and 5', () => {
  test('the watchdog ends what takes too long', async () => {
    const { move } = await simulated({ sim: HALL, safety: { max_drive_duration: 2 } })
    const end = await move({ x: 0.5 }, 10)
    expect(end).toMatchObject({ reason: 'watchdog' })
    expect(end.tookMs).toBeLessThan(2050)
  })

  test('an emergency stop holds until it is released and reset', async () => {
    const { move, kernel, look, told, clock } = await simulated({ sim: HALL }, 'the emergency stop was pressed')
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'refused', why: expect.stringContaining('waits for a person') })
    expect(await look()).toMatchObject({ latched: 'the emergency stop was pressed' })
    kernel.take({ kind: 'reset', id: 99 })
    await clock.advance(50)
    expect(told).toContainEqual({ kind: 'released' })
    expect(await move({ x: 0.5 }, 1)).toMatchObject({ reason: 'done' })
  })

  test('a reset judges the button as it is now, not as it was last heard of', async () => {
    const { kernel, body, hear, told } = await simulated({ sim: HALL })
    hear({ kind: 'estop', isPressed: true })
    body.poll = () => hear({ kind: 'estop', isPressed: false })
    kernel.take({ kind: 'reset', id: 1 })
    expect(told).toContainEqual({ kind: 'released' })
  })

  test('a part that fails is told of once, after the end of the movement', async () => {
    const { kernel, clock, told, body, hear } = await simulated({ sim: HALL })
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    hear({ kind: 'fault', what: 'the drive is gone' })
    hear({ kind: 'fault', what: 'the drive takes no commands' })
    expect(told.slice(-2)).toEqual([
      { kind: 'ended', end: expect.objectContaining({ reason: 'fault', why: 'the drive is gone' }) },
      { kind: 'faulted', why: 'the drive is gone' },
    ])
    const { x } = body.pose
    await clock.advance(500)
    expect(body.pose.x).toBe(x)
  })

  test('what is asked of it while it closes is not taken up', async () => {
    const { kernel, notes, clock, told } = await simulated({ sim: HALL })
    const closing = kernel.close('it got SIGTERM')
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    await closing
    expect(notes.map(({ what }) => what)).not.toContain('run')
    expect(told).toEqual([])
  })

  test('it begins by halting, and halts when it is closed', async () => {
    const { kernel, clock, notes } = await simulated({ sim: HALL })
    expect(notes.map(({ what }) => what)).toEqual(['halt'])
    kernel.take({ kind: 'move', move: { id: 1, velocity: { x: 0.5, y: 0, turn: 0 }, amount: 10, forMs: null } })
    await clock.advance(500)
    await kernel.close('the daemon is gone')
    expect(notes.slice(-2).map(({ what }) => what)).toEqual(['halt', 'closed'])
  })

  test('nothing is asked of the sensors at rest', async () => {
    const { move, clock } = await simulated({ sim: HALL })
    await move({ x: 0.5 }, 0.2)
    await clock.advance(100)
    expect(clock.sleeping).toBe(0)
  })
})

test('the simulator is the same for the same seed, and another one for another', async () => {
  const run = async (seed: number) => {
    const { look } = await simulated({ sim: { seed, noise: 0.05, dropout: 0.1 } })
    return (await look()).ways
  }
  expect(await run(1)).toEqual(await run(1))
  expect(await run(1)).not.toEqual(await run(2))
})
