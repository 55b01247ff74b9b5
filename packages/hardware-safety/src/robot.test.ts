import type { Tool } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import type { MoveEnd } from './core/robot-event.ts'
import feature from './index.ts'
import { robotToml } from './robot-toml.ts'
import { type InlineAnswers, inlineCompanion } from './testing/inline-companion.ts'

function robot(answers: InlineAnswers = {}, { toml = {}, ...more }: TestHostOverrides & { readonly toml?: object | null } = {}) {
  const companion = inlineCompanion(answers)
  const audited: unknown[] = []
  const host = testHost({
    companion: companion.start,
    services: {
      readToml: async () => (toml === null ? undefined : v.parse(robotToml, toml)) as never,
      audit: async (record) => void audited.push(record),
    },
    ...more,
  })
  const parts = feature.build(host, {})
  const named = (name: string): Tool => {
    const tool = parts.tools?.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`the feature has no tool ${name}`)
    return tool
  }
  const run = (name: string, input: object, context = {}) => {
    const tool = named(name)
    return tool.run(v.parse(tool.input, input), { ...toolContext(), ...context })
  }
  return { host, parts, named, run, audited, companion }
}

const END: Omit<MoveEnd, 'id'> = { reason: 'stopped', why: 'a stop was requested', moved: 0.1, tookMs: 200, reversed: 0 }
const moves = (sent: readonly { readonly kind: string }[]) => sent.filter(({ kind }) => kind === 'move')

describe('robot.toml', () => {
  test('absent: starts nothing and makes the tools unavailable', async () => {
    const { parts, named, companion, host, run } = robot({}, { toml: null })
    await parts.register?.(new AbortController().signal)
    await host.advance(60_000)
    expect(['drive', 'sense', 'estop_reset'].map((name) => named(name).available?.())).toEqual([false, false, false])
    expect(companion.inits).toEqual([])
    await expect(run('drive', { action: 'stop' })).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('present: starts the safety process some time after the daemon', async () => {
    const { parts, named, companion, host } = robot()
    await parts.register?.(new AbortController().signal)
    expect(named('drive').available?.()).toBe(true)
    await host.advance(1000)
    expect(companion.inits).toHaveLength(0)
    await host.advance(2000)
    await expect.poll(() => companion.inits).toHaveLength(1)
  })

  test('marks every answer of a simulated robot', async () => {
    const { parts, host, run } = robot()
    await parts.register?.(new AbortController().signal)
    expect(parts.prompt?.()).toContain('SIMULATED')
    expect(await run('sense', {})).toMatch(/^SIMULATED/)
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'warn', message: 'the robot is SIMULATED: no real robot moves' }))
    expect(await run('drive', { action: 'forward' })).toMatch(/^SIMULATED/)
  })
})

describe('drive', () => {
  test.each([
    [
      { action: 'forward', distance: 1, speed: 1 },
      { velocity: { x: 0.5, y: 0, turn: 0 }, amount: 1, forMs: null },
    ],
    [{ action: 'backward' }, { velocity: { x: -0.25, y: 0, turn: 0 }, amount: 0.5, forMs: null }],
    [{ action: 'left' }, { velocity: { x: 0, y: 0.25, turn: 0 }, amount: 0.5, forMs: null }],
    [{ action: 'right' }, { velocity: { x: 0, y: -0.25, turn: 0 }, amount: 0.5, forMs: null }],
    [{ action: 'rotate_left' }, { velocity: { x: 0, y: 0, turn: 0.5 }, amount: Math.PI / 2, forMs: null }],
    [
      { action: 'rotate_right', distance: 180, speed: 1 },
      { velocity: { x: 0, y: 0, turn: -1 }, amount: Math.PI, forMs: null },
    ],
    [
      { action: 'custom', linear_x: 1, angular_z: -0.5, duration_ms: 300 },
      { velocity: { x: 0.5, y: 0, turn: -0.5 }, amount: null, forMs: 300 },
    ],
  ])('requests %j in metres, radians and milliseconds', async (input, move) => {
    const { run, companion } = robot()
    await run('drive', input)
    expect(moves(companion.sent)).toEqual([{ kind: 'move', move: { id: expect.any(Number), ...move } }])
  })

  test.each([
    { action: 'forward', distance: Number.NaN },
    { action: 'forward', distance: Number.POSITIVE_INFINITY },
    { action: 'forward', distance: -1 },
    { action: 'forward', distance: 0 },
    { action: 'rotate_left', distance: 721 },
    { action: 'forward', speed: 1.1 },
    { action: 'forward', speed: -0.5 },
    { action: 'custom', linear_x: 2 },
    { action: 'custom', linear_x: 1, duration_ms: 1e9 },
    { action: 'jump' },
  ])('refuses %j by its schema', (input) => {
    expect(v.safeParse(robot().named('drive').input, input).success).toBe(false)
  })

  test.each([{ action: 'forward', distance: 51 }, { action: 'custom' }])('refuses %j, which describes no movement', async (input) => {
    const { run, companion } = robot()
    await expect(run('drive', input)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(companion.sent).toEqual([])
  })

  test('answers with what really happened', async () => {
    const { run } = robot({ end: { reason: 'obstacle', why: 'an obstacle is at 0.31 m', moved: 0.42 } })
    const reports: unknown[] = []
    const answer = await run('drive', { action: 'forward', distance: 1 }, { report: (report: unknown) => reports.push(report) })
    expect(answer).toContain('moved 0.42 m of 1.00 m in 1.0 s: stopped, an obstacle is at 0.31 m')
    expect(reports).toEqual([{ failed: true }])
  })

  test('waits for a slow movement and its retreat to end', async () => {
    const { run, host, companion } = robot({ silent: true }, { toml: { safety: { max_drive_duration: 30 } } })
    const answer = run('drive', { action: 'forward', speed: 0.01 })
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    await host.advance(50_000)
    companion.say({ kind: 'ended', end: { ...END, id: 1, reason: 'bump', why: 'something touches it', reversed: 0.15 } })
    expect(await answer).toContain('something touches it, and backed off 0.15 m')
  })

  test('records a movement before it begins, and refuses it without a record', async () => {
    const { run, audited } = robot()
    await run('drive', { action: 'forward', distance: 1 })
    expect(audited).toEqual([
      { by: 'turn:turn', detail: expect.objectContaining({ device: 'robot', tool: 'drive', action: 'forward', distance: 1 }) },
    ])
    const without = robot({}, { services: { readToml: async () => v.parse(robotToml, {}) as never } })
    await expect(without.run('drive', { action: 'forward' })).rejects.toMatchObject({ code: 'unavailable' })
    expect(without.companion.sent).toEqual([])
  })

  test('needs approval to move, but not to stop', () => {
    const { risk } = robot().named('drive')
    const riskOf = typeof risk === 'function' ? risk : () => risk
    expect(riskOf({ action: 'stop' }, testHost().by)).toBe('read')
    for (const action of ['forward', 'rotate_left', 'custom']) expect(riskOf({ action }, testHost().by)).toBe('execute')
  })
})

describe('a stop', () => {
  test('waits neither for the lease of another client nor for the record', async () => {
    const { run, companion } = robot({ silent: true }, { toml: {} })
    void run('drive', { action: 'forward' }, { client: 'one' }).catch(() => undefined)
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    await expect(run('drive', { action: 'forward' }, { client: 'two' })).rejects.toMatchObject({ code: 'conflict' })
    void run('drive', { action: 'stop' }, { client: 'two' })
    await expect.poll(() => companion.sent.at(-1)?.kind).toBe('stop')
  })

  test('ends a safety process that does not answer it', async () => {
    const { run, host, companion } = robot({ silent: true })
    const looking = run('sense', {}).catch(() => 'no answer')
    await expect.poll(() => companion.sent).toHaveLength(1)
    const stopped = run('drive', { action: 'stop' })
    await expect.poll(() => companion.sent).toHaveLength(2)
    await host.advance(1100)
    expect(await stopped).toContain('has stopped')
    expect(await looking).toBe('no answer')
    expect(host.logs).toContainEqual(expect.objectContaining({ message: 'robot safety process ended' }))
  })

  test.each([
    ['drive', { action: 'forward' }, 70_000],
    ['estop_reset', {}, 1100],
  ])('an unanswered %s ends the safety process, so that it is not done later', async (name, input, ms) => {
    const { run, host, companion } = robot({ silent: true })
    const asked = run(name, input, { approvedBy: 'device:1' }).catch((error: Error) => error.message)
    await expect.poll(() => companion.sent).toHaveLength(1)
    await host.advance(ms)
    expect(await asked).toContain('The safety process does not answer')
    await expect.poll(() => companion.inits).toHaveLength(2)
    expect(companion.inits.at(-1)?.latched).toBe('the safety process ended: it was closed')
  })

  test('of an aborted turn ends a safety process that does not answer', async () => {
    const { run, host, companion } = robot({ silent: true })
    const abort = new AbortController()
    const moving = run('drive', { action: 'forward' }, { signal: abort.signal }).catch((error: Error) => error.message)
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    abort.abort()
    await host.advance(1100)
    expect(await moving).toContain('The safety process has ended')
  })

  test('logs no error when the safety process ends by itself meanwhile', async () => {
    const { run, parts, host, companion } = robot({ silent: true })
    void run('sense', {}).catch(() => undefined)
    await expect.poll(() => companion.sent).toHaveLength(1)
    const drained = parts.drain?.()
    await expect.poll(() => companion.sent.at(-1)?.kind).toBe('stop')
    companion.end('it ended with code 0')
    await drained
    expect(host.logs.filter(({ level }) => level === 'error')).toEqual([])
  })

  test.each([
    { action: 'stop', speed: 0, distance: 0 },
    { action: ' Stop', linear_x: null },
  ])('is recognised with other fields: %j', (raw) => {
    const { input, haltOf } = robot().named('drive')
    expect(v.safeParse(input, haltOf?.(raw))).toMatchObject({ success: true, output: { action: 'stop' } })
  })

  test.each([{ action: 'forward', speed: 0 }, {}, null, 'stop', [{ action: 'stop' }]])('is not recognised in %j', (raw) => {
    expect(robot().named('drive').haltOf?.(raw)).toBeUndefined()
  })

  test('cancels a movement that waits for another one', async () => {
    const { run, companion } = robot({ silent: true })
    const first = run('drive', { action: 'forward' })
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    const second = run('drive', { action: 'backward' })
    void run('drive', { action: 'stop' }, { client: 'two' })
    await expect.poll(() => companion.sent.at(-1)?.kind).toBe('stop')
    companion.say({ kind: 'ended', end: { ...END, id: 1 } })
    expect(await first).toContain('stopped')
    await expect(second).rejects.toThrow('a stop was requested while the movement waited')
    expect(moves(companion.sent)).toHaveLength(1)
  })

  test('ends the movement when the feature closes, and none begins after that', async () => {
    const { run, parts, companion } = robot({ silent: true })
    const moving = run('drive', { action: 'forward' })
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    const drained = parts.drain?.()
    await expect.poll(() => companion.sent.at(-1)?.kind).toBe('stop')
    companion.say({ kind: 'ended', end: { ...END, id: 1 } })
    companion.say({ kind: 'stopped', id: 2 })
    expect(await moving).toContain('moved 0.10 m of 0.50 m')
    await drained
    await expect(run('drive', { action: 'forward' })).rejects.toThrow('being reconfigured')
  })

  test('follows from a newer message, and the turn moves nothing more', async () => {
    const { run, companion } = robot({ silent: true })
    const newer = new AbortController()
    const moving = run('drive', { action: 'forward' }, { superseded: newer.signal })
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    newer.abort()
    expect(companion.sent.at(-1)).toMatchObject({ kind: 'stop' })
    companion.say({ kind: 'ended', end: { ...END, id: 1 } })
    expect(await moving).toContain('stopped, a newer message in this conversation')
    await expect(run('drive', { action: 'backward' }, { superseded: newer.signal })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('Not moved: a newer message'),
    })
    expect(moves(companion.sent)).toHaveLength(1)
  })

  test('follows from an aborted turn', async () => {
    const { run, companion } = robot({ silent: true })
    const abort = new AbortController()
    void run('drive', { action: 'forward' }, { signal: abort.signal }).catch(() => undefined)
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    abort.abort()
    expect(companion.sent.at(-1)).toMatchObject({ kind: 'stop' })
  })
})

describe('an emergency stop', () => {
  test('can be reset by a person only', async () => {
    const { run, named, companion } = robot()
    expect(named('estop_reset').alwaysAsks).toBe(true)
    await expect(run('estop_reset', {})).rejects.toMatchObject({ code: 'forbidden' })
    expect(companion.sent).toEqual([])
    expect(await run('estop_reset', {}, { approvedBy: 'device:1' })).toBe('the robot may move again')
  })

  test.each([
    [{ isEstopPressed: true }, 'The emergency stop is still pressed: release it first'],
    [{ latched: 'something else' }, 'The robot is still stopped: something else'],
  ])('stays in force with %j', async (view, why) => {
    const { run } = robot({ view })
    await expect(run('estop_reset', {}, { approvedBy: 'device:1' })).rejects.toThrow(why)
  })

  test('survives a restart of the daemon', async () => {
    const first = robot()
    await first.run('sense', {})
    first.companion.say({ kind: 'latched', why: 'the emergency stop was pressed' })
    const { keyValue } = first.host
    await first.parts.close?.()
    const second = robot({}, { keyValue })
    await second.run('sense', {})
    expect(second.companion.inits[0]?.latched).toBe('the emergency stop was pressed')
    second.companion.say({ kind: 'released' })
    const third = robot({}, { keyValue })
    await third.run('sense', {})
    expect(third.companion.inits[0]?.latched).toBeNull()
  })
})

describe('a safety process that ends', () => {
  test('is restarted three times, each time stopped until a person resets the robot', async () => {
    const { run, companion } = robot()
    await run('sense', {})
    for (let time = 1; time <= 3; time++) {
      companion.end('it was ended by SIGSEGV')
      await expect.poll(() => companion.inits).toHaveLength(time + 1)
      expect(companion.inits.at(-1)?.latched).toBe('the safety process ended: it was ended by SIGSEGV')
      await run('sense', {})
    }
    companion.end('it was ended by SIGSEGV')
    await expect(run('drive', { action: 'forward' })).rejects.toThrow("The robot's safety process ended 4 times")
    expect(await run('drive', { action: 'stop' })).toContain('has stopped')
    expect(companion.inits).toHaveLength(4)
  })

  test.each([
    ['takes long to store', () => new Promise<void>(() => undefined)],
    ['cannot be stored', () => Promise.reject(new Error('the disk is full'))],
  ])('is restarted in the stopped state, even when the reason %s', async (_, set) => {
    const { run, companion } = robot({}, { keyValue: { ...testHost().keyValue, set } })
    await run('sense', {})
    companion.end('it was ended by SIGSEGV')
    await run('sense', {})
    expect(companion.inits.map(({ latched }) => latched)).toEqual([null, 'the safety process ended: it was ended by SIGSEGV'])
  })

  test('ends the current movement with its reason', async () => {
    const { run, companion } = robot({ silent: true })
    const moving = run('drive', { action: 'forward' })
    await expect.poll(() => moves(companion.sent)).toHaveLength(1)
    companion.end('it was ended by SIGKILL')
    await expect(moving).rejects.toThrow('The safety process has ended: it was ended by SIGKILL')
  })

  test('because a part failed is restarted by the next call', async () => {
    const { run, companion } = robot()
    await run('sense', {})
    companion.say({ kind: 'faulted', why: 'the drive on /dev/ttyACM0 is gone' })
    companion.end('it ended with code 0')
    expect(companion.inits).toHaveLength(1)
    await run('sense', {})
    expect(companion.inits.map(({ latched }) => latched)).toEqual([null, null])
  })

  test('that still starts when the daemon stops does not delay it', async () => {
    const starting = Promise.withResolvers<undefined>()
    const { run, parts, companion } = robot({ hangs: true }, { keyValue: { ...testHost().keyValue, get: () => starting.promise } })
    const asked = run('sense', {})
    const drained = parts.drain?.()
    starting.resolve(undefined)
    await expect(asked).rejects.toThrow('The robot is shutting down')
    await drained
    expect(companion.sent).toEqual([])
  })

  test('before it is ready gives its reason, and the next call tries again', async () => {
    const { run, companion } = robot({ failure: 'there is no /dev/ttyACM0' })
    await expect(run('sense', {})).rejects.toMatchObject({ code: 'unavailable', message: 'there is no /dev/ttyACM0' })
    await expect(run('sense', {})).rejects.toThrow('there is no /dev/ttyACM0')
    expect(companion.inits.map(({ latched }) => latched)).toEqual([null, null])
  })
})

describe('an operator', () => {
  const opened = async (answers: InlineAnswers = {}) => {
    const made = robot(answers)
    await made.parts.register?.(new AbortController().signal)
    await made.host.advance(3000)
    await expect.poll(() => made.companion.inits).toHaveLength(1)
    return made
  }

  test('sees the robot without starting its safety process', async () => {
    const { parts, companion } = robot()
    await parts.register?.(new AbortController().signal)
    expect(await parts.hardware?.robot?.()).toMatchObject({ state: 'off', ways: [] })
    expect(companion.inits).toEqual([])
    const { parts: running } = await opened({ view: { isMoving: true } })
    expect(await running.hardware?.robot?.()).toMatchObject({
      state: 'moving',
      estopPressed: false,
      ways: [{ way: 'ahead', metres: 1.5 }, { way: 'left', metres: null }, {}, {}],
      holder: null,
    })
  })

  test('stops the robot at once, for the next process too, and the audit log has the operator', async () => {
    const { parts, companion, audited, host } = await opened()
    await parts.hardware?.stop?.('device:o')
    expect(companion.sent.at(-1)).toMatchObject({ kind: 'stop', latches: true, why: 'an operator stopped it (device:o)' })
    expect(audited).toEqual([{ by: 'device:o', detail: { device: 'robot', action: 'emergency stop' } }])
    expect(await host.keyValue.get('latched')).toBe('an operator stopped it (device:o)')
  })

  test('stops a robot whose safety process does not run yet', async () => {
    const { parts, companion, host } = robot()
    await parts.register?.(new AbortController().signal)
    await parts.hardware?.stop?.('device:o')
    expect(await parts.hardware?.robot?.()).toMatchObject({ state: 'stopped', reason: 'an operator stopped it (device:o)' })
    await host.advance(3000)
    await expect.poll(() => companion.inits[0]?.latched).toBe('an operator stopped it (device:o)')
  })

  test('cannot reset while the emergency stop is pressed', async () => {
    const pressed = await opened({ view: { isEstopPressed: true } })
    await expect(pressed.parts.hardware?.reset?.('device:o')).rejects.toMatchObject({ code: 'conflict' })
    const free = await opened()
    await free.parts.hardware?.reset?.('device:o')
    expect(free.companion.sent.at(-1)).toMatchObject({ kind: 'reset' })
    expect(free.audited).toEqual([{ by: 'device:o', detail: { device: 'robot', action: 'reset' } }])
  })

  test('sees nothing where no robot is configured', async () => {
    const { parts } = robot({}, { toml: null })
    await parts.register?.(new AbortController().signal)
    expect(await parts.hardware?.robot?.()).toBeUndefined()
    await expect(parts.hardware?.stop?.('device:o')).rejects.toMatchObject({ code: 'unavailable' })
  })
})
