import { AppError, type ClientId, type DeviceRecord } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDeviceGuard, type DeviceUse } from './device-guard.ts'

const LIMITS = { lease_secs: 30, pin_reservation_secs: 3600 }

const arrange = (overrides: TestHostOverrides = {}, limits = LIMITS) => {
  const records: DeviceRecord[] = []
  const host = testHost({ services: { audit: async (record) => void records.push(record) }, ...overrides })
  const guard = createDeviceGuard(host, limits)
  const use = (client: string, more: Partial<DeviceUse> = {}, signal?: AbortSignal): DeviceUse => ({
    device: 'board_a0',
    tool: 'gpio_write',
    context: { ...toolContext(signal), client: client as ClientId },
    ...more,
  })
  return { host, guard, records, use }
}

const nothing = async () => 'ran'

/** A clock whose wall clock can be set back while it runs. */
const settableClock = () => {
  const clock = testClock()
  let backMs = 0
  const setBack = (ms: number) => {
    backMs = ms
  }
  return { clock: { ...clock, nowMs: () => clock.nowMs() - backMs }, setBack }
}
/** A transaction that records whether it ran. */
const work = () => {
  const state = { hasRun: false }
  const run = async () => {
    state.hasRun = true
  }
  return { state, run }
}

describe('the lease of a device', () => {
  test('refuses another client until it expires, with the time to wait', async () => {
    const { guard, host, use } = arrange()
    await guard.use(use('alice'), nothing)
    const { state, run } = work()
    await expect(guard.use(use('bob'), run)).rejects.toMatchObject({ code: 'conflict', retryAfterSecs: 30 })
    await host.advance(29_999)
    await expect(guard.use(use('bob'), run)).rejects.toMatchObject({ code: 'conflict', retryAfterSecs: 1 })
    expect(state.hasRun).toBe(false)
    await host.advance(1)
    await guard.use(use('bob'), run)
    expect(state.hasRun).toBe(true)
    await expect(guard.use(use('alice'), nothing)).rejects.toMatchObject({ code: 'conflict' })
  })

  test('belongs to the authenticated caller, on any connection', async () => {
    const { guard, use } = arrange()
    const by = (caller: string, client: string, pins: readonly number[]) => {
      const { context, ...rest } = use(client, { pins, write: {} })
      return { ...rest, context: { ...context, caller } }
    }
    await guard.use(by('device-1', 'first', [17]), nothing)
    expect(await guard.use(by('device-1', 'second', [17]), nothing)).toBe('ran')
    await expect(guard.use(by('device-2', 'second', [4]), nothing)).rejects.toMatchObject({ code: 'conflict' })
  })

  test('does not cover other devices', async () => {
    const { guard, use } = arrange()
    await guard.use(use('alice'), nothing)
    expect(await guard.use(use('bob', { device: 'board_b0' }), nothing)).toBe('ran')
  })

  test('lasts as long as a running call', async () => {
    const { guard, host, use } = arrange()
    const { promise, resolve } = Promise.withResolvers<void>()
    const running = guard.use(use('alice'), () => promise)
    await host.advance(120_000)
    await expect(guard.use(use('bob'), nothing)).rejects.toMatchObject({ code: 'conflict', retryAfterSecs: 1 })
    resolve()
    await running
    await expect(guard.use(use('bob'), nothing)).rejects.toMatchObject({ code: 'conflict', retryAfterSecs: 30 })
  })

  test('expires in time when the wall clock is set back', async () => {
    const { clock, setBack } = settableClock()
    const { guard, host, use } = arrange({ clock })
    await guard.use(use('alice'), nothing)
    setBack(86_400_000)
    await host.advance(30_000)
    expect(await guard.use(use('bob'), nothing)).toBe('ran')
  })

  test('is not taken by a refused call', async () => {
    const { guard, use } = arrange({ services: {} })
    await expect(guard.use(use('alice', { write: {} }), nothing)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await guard.use(use('bob'), nothing)).toBe('ran')
  })

  test('is available for a bounded number of devices', async () => {
    const { guard, use } = arrange()
    for (let index = 0; index < 256; index++) await guard.use(use('alice', { device: `d${index}` }), nothing)
    await expect(guard.use(use('alice', { device: 'more' }), nothing)).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('the transactions of a device', () => {
  test('never interleave, and do not run after a refusal', async () => {
    const step = fc.record({
      client: fc.constantFrom('alice', 'bob'),
      device: fc.constantFrom('board_a0', 'board_b0'),
      awaits: fc.nat(3),
      fails: fc.boolean(),
      aborts: fc.boolean(),
      waitMs: fc.constantFrom(0, 0, 10_000, 40_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { guard, host, use } = arrange()
        const running = new Map<string, string>()
        const calls = []
        for (const { client, device, awaits, fails, aborts, waitMs } of steps) {
          const abort = new AbortController()
          const state = { begun: false, ended: false }
          const transaction = async () => {
            state.begun = true
            expect(running.get(device)).toBeUndefined()
            running.set(device, client)
            for (let tick = 0; tick < awaits; tick++) await Promise.resolve()
            expect(running.get(device)).toBe(client)
            running.delete(device)
            state.ended = true
            if (fails) throw new AppError('upstream', 'it failed')
          }
          const outcome = guard.use(use(client, { device }, abort.signal), transaction).then(
            () => 'done',
            (error: AppError) => error.code,
          )
          if (aborts) abort.abort()
          calls.push({ outcome, state })
          if (waitMs > 0) await host.advance(waitMs)
        }
        for (const { outcome, state } of calls) {
          const code = await outcome
          await new Promise((resolve) => setImmediate(resolve))
          expect(state.ended).toBe(state.begun)
          expect(state.begun).toBe(code === 'done' || code === 'upstream')
        }
      }),
      { numRuns: 60 },
    )
  })

  test('run in order, also after one has failed', async () => {
    const { guard, use } = arrange()
    const order: string[] = []
    const run = (name: string, fails = false) =>
      guard.use(use('alice'), async () => {
        order.push(`${name} begins`)
        await Promise.resolve()
        order.push(`${name} ends`)
        if (fails) throw new AppError('upstream', 'it failed')
      })
    await Promise.allSettled([run('a', true), run('b'), run('c')])
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  test('are refused when 16 are waiting already', async () => {
    const { guard, use } = arrange()
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = Array.from({ length: 16 }, () => guard.use(use('alice'), () => promise))
    await expect(guard.use(use('alice'), nothing)).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 1 })
    resolve()
    await Promise.all(waiting)
    expect(await guard.use(use('alice'), nothing)).toBe('ran')
  })

  test('end at once and never run when aborted while they wait', async () => {
    const { guard, use } = arrange()
    const { promise, resolve } = Promise.withResolvers<void>()
    const first = guard.use(use('alice'), () => promise)
    const abort = new AbortController()
    const { state, run } = work()
    const second = guard.use(use('alice', { write: {} }, abort.signal), run)
    abort.abort()
    await expect(second).rejects.toMatchObject({ code: 'aborted' })
    resolve()
    await first
    await guard.use(use('alice'), nothing)
    expect(state.hasRun).toBe(false)
  })
})

describe('a pin reservation', () => {
  const DAYS = { lease_secs: 1, pin_reservation_secs: 3600 }

  test('goes to one of two clients that reserve through two processes at once', async () => {
    const { guard, host, use } = arrange({}, DAYS)
    const otherProcess = createDeviceGuard(host, DAYS)
    const outcomes = await Promise.allSettled([
      guard.use(use('alice', { pins: [4, 17] }), nothing),
      otherProcess.use(use('bob', { pins: [5, 17] }), nothing),
    ])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const [lost, free] = outcomes[0]?.status === 'rejected' ? ['alice', 4] : ['bob', 5]
    await host.advance(2000)
    // The refused call reserved nothing.
    expect(await guard.use(use(`not ${lost}`, { pins: [free] }), nothing)).toBe('ran')
  })

  test('refuses another client until it expires, also after a restart', async () => {
    const { guard, host, use, records } = arrange({}, DAYS)
    await guard.use(use('alice', { pins: [17], write: { value: 1 } }), nothing)
    await host.advance(2000)
    const restarted = createDeviceGuard(host, DAYS)
    const { state, run } = work()
    await expect(restarted.use(use('bob', { pins: [4, 17], write: { value: 0 } }), run)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('17'),
      retryAfterSecs: 3598,
    })
    expect(state.hasRun).toBe(false)
    expect(records).toHaveLength(1)
    // The refused call did not reserve pin 4.
    expect(await restarted.use(use('carol', { pins: [4] }), nothing)).toBe('ran')
    await host.advance(3_600_000)
    expect(await restarted.use(use('bob', { pins: [17] }), nothing)).toBe('ran')
  })

  test('is ignored when the wall clock was set back after it was made', async () => {
    const { clock, setBack } = settableClock()
    const { guard, use } = arrange({ clock }, DAYS)
    await guard.use(use('alice', { pins: [17] }), nothing)
    setBack(86_400_000)
    await clock.advance(2000)
    expect(await guard.use(use('bob', { pins: [17] }), nothing)).toBe('ran')
    await clock.advance(2000)
    await expect(guard.use(use('alice', { pins: [17] }), nothing)).rejects.toMatchObject({ code: 'conflict' })
  })

  test.each(['cli', 'cli:ann'])('of the command line %s ends with its lease', async (caller) => {
    const { guard, host, use } = arrange({}, DAYS)
    const { context, ...rest } = use('once', { pins: [7], write: {} })
    await guard.use({ ...rest, context: { ...context, caller } }, nothing)
    await expect(guard.use(use('bob', { pins: [7], write: {} }), nothing)).rejects.toMatchObject({ code: 'conflict', retryAfterSecs: 1 })
    await host.advance(1000)
    expect(await guard.use(use('bob', { pins: [7], write: {} }), nothing)).toBe('ran')
  })

  test('is not made when its time is 0', async () => {
    const limits = { lease_secs: 1, pin_reservation_secs: 0 }
    const { guard, host, use } = arrange({}, limits)
    await guard.use(use('alice', { pins: [17] }), nothing)
    await host.advance(1000)
    expect(await guard.use(use('bob', { pins: [17] }), nothing)).toBe('ran')
  })
})

describe('the audit log', () => {
  test('records every write before it happens, and no read', async () => {
    const { guard, use, records } = arrange()
    await guard.use(use('alice'), nothing)
    expect(records).toEqual([])
    const context = { ...toolContext(), client: 'alice' as ClientId, approvedBy: 'device:phone' }
    await guard.use({ device: 'board_a0', tool: 'gpio_write', context, write: { value: 1 }, pins: [25] }, async () => {
      expect(records).toEqual([
        {
          by: 'device:phone',
          detail: { device: 'board_a0', tool: 'gpio_write', client: 'alice', turn: 'turn', pins: [25], value: 1 },
        },
      ])
    })
    await guard.use(use('alice', { write: { value: 0 } }), nothing)
    expect(records[1]).toMatchObject({ by: 'turn:turn' })
  })

  test('stops a write that it cannot record', async () => {
    const full = async () => {
      throw new AppError('unavailable', 'the disk is full')
    }
    const { guard, use } = arrange({ services: { audit: full } })
    const { state, run } = work()
    await expect(guard.use(use('alice', { write: {} }), run)).rejects.toMatchObject({ message: 'the disk is full' })
    expect(state.hasRun).toBe(false)
  })
})

test('operators see who has a device, and for whom pins are reserved, until both expire', async () => {
  const { guard, host, use } = arrange()
  const atMs = host.clock.nowMs()
  const during = Promise.withResolvers<void>()
  const running = guard.use(use('alice', { pins: [4, 'led'] }), () => during.promise)
  await expect.poll(async () => [...(await guard.held()).holders]).toEqual([['board_a0', { client: 'alice', untilMs: null }]])
  during.resolve()
  await running
  const { holders, pins } = await guard.held()
  expect([...holders]).toEqual([['board_a0', { client: 'alice', untilMs: atMs + 30_000 }]])
  const untilMs = atMs + 3_600_000
  expect(pins.get('board_a0')).toEqual([
    { pin: '4', client: 'alice', untilMs },
    { pin: 'led', client: 'alice', untilMs },
  ])
  await host.advance(30_000)
  expect((await guard.held()).holders.size).toBe(0)
  await host.advance(3_600_000)
  expect((await guard.held()).pins.size).toBe(0)
})
