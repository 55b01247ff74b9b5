import { AppError, type Channel, type Sandbox, type StoreHealth } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { createEventBus } from './events/event-bus.ts'
import { createHealthWatch } from './health.ts'
import { noSandbox, refusingSandbox } from './sandbox/no-sandbox.ts'
import type { SandboxChoice } from './sandbox/select-sandbox.ts'

function arrange() {
  const clock = testClock()
  const bus = createEventBus({ clock, run: 'test' })
  const seen: {
    store: StoreHealth
    probes: number
    probe: () => Promise<void>
    channel: 'ok' | 'down' | 'degraded'
    link: 'ok' | 'down'
    held: number
    clockOffsetMs?: number
    sandbox?: SandboxChoice
  } = {
    store: { lastCommitMs: null, fault: null },
    probes: 0,
    probe: async () => {},
    channel: 'ok',
    link: 'ok',
    held: 2,
  }
  const channel = { name: 'x', health: () => ({ state: seen.channel, detail: 'the token abc is wrong' }) } as unknown as Channel
  const health = createHealthWatch({
    clock,
    bus,
    store: {
      health: () => seen.store,
      probe() {
        seen.probes += 1
        return seen.probe()
      },
    },
    snapshot: () => ({
      channels: [channel],
      links: () => [{ name: 'mqtt', state: seen.link }],
      gateway: { require_pairing: true } as never,
    }),
    leases: () => ({ held: seen.held, wanted: 2 }),
    sandbox: () => seen.sandbox,
    clockOffsetMs: () => seen.clockOffsetMs ?? null,
  })
  return { clock, bus, seen, health }
}

const failed = (code: string) => ({ type: 'turn_failed', turn_id: 't', session_id: null, source: 'ws', code, error: 'x' }) as const

describe('HealthWatch', () => {
  test('reports a healthy daemon, without details that may hold secrets', () => {
    const { health } = arrange()
    expect(health.look()).toEqual({
      status: 'ok',
      require_pairing: true,
      store: { state: 'ok', reason: null },
      config: { state: 'ok' },
      provider: { state: 'unknown' },
      leases: { held: 2, wanted: 2 },
      node: null,
      channels: [{ name: 'x', state: 'ok' }],
      links: [{ name: 'mqtt', state: 'ok' }],
      warnings: [],
    })
  })

  test('is degraded by a lease that another process has, but stays ready', async () => {
    const { health, seen } = arrange()
    seen.held = 0
    expect(health.look()).toMatchObject({ status: 'ok' })
    health.started()
    expect(health.look()).toMatchObject({ status: 'degraded', leases: { held: 0, wanted: 2 } })
    expect(await health.notReady()).toBeNull()
  })

  test('is degraded by a full disk, or a channel, broker or provider that is down', () => {
    const { health, seen, bus } = arrange()
    seen.store = { lastCommitMs: null, fault: 'database or disk is full' }
    expect(health.look()).toMatchObject({ status: 'degraded', store: { state: 'failing', reason: 'database or disk is full' } })
    seen.store = { lastCommitMs: null, fault: null }
    seen.channel = 'down'
    expect(health.look()).toMatchObject({ status: 'degraded', channels: [{ name: 'x', state: 'down' }] })
    seen.channel = 'ok'
    seen.link = 'down'
    expect(health.look()).toMatchObject({ status: 'degraded', links: [{ name: 'mqtt', state: 'down' }] })
    seen.link = 'ok'
    for (const code of ['unavailable', 'rate_limited']) bus.emit(failed(code))
    expect(health.look()).toMatchObject({ status: 'ok', provider: { state: 'unknown' } })
    bus.emit(failed('upstream'))
    expect(health.look()).toMatchObject({ status: 'degraded', provider: { state: 'failing' } })
    bus.emit(failed('aborted'))
    expect(health.look()).toMatchObject({ provider: { state: 'failing' } })
    const completed = { type: 'turn_completed', turn_id: 't', session_id: null, source: 'ws', model: 'm', took_ms: 1 } as const
    bus.emit({ ...completed, input_tokens: 1, output_tokens: 1, cost_usd: 0, finish_reason: 'stop' })
    expect(health.look()).toMatchObject({ status: 'ok', provider: { state: 'ok' } })
  })

  test('warns of commands that run unconfined, elsewhere or not at all, without the reason', () => {
    const { health, seen } = arrange()
    const warned = (sandbox: Sandbox, warning?: string) => {
      seen.sandbox = { sandbox, probes: [], isFinal: false, ...(warning !== undefined && { warning }) }
      return health.look().warnings
    }
    expect(warned({ ...noSandbox, name: 'jail' })).toEqual([])
    const why = "'container' does not work: /var/run/docker.sock is not there"
    expect(warned({ ...noSandbox, name: 'jail' }, why)).toEqual([
      'commands run in another sandbox than the configuration names: see sluice doctor',
    ])
    expect(warned(noSandbox)).toEqual(['commands run without a sandbox: see sluice doctor'])
    expect(warned(refusingSandbox(why), why)).toEqual(['commands are refused, because no sandbox works: see sluice doctor'])
  })

  test('warns of the clock of this node where it differs from that of the database by more than a second', () => {
    const { health, seen } = arrange()
    seen.clockOffsetMs = -1_000
    expect(health.look().warnings).toEqual([])
    seen.clockOffsetMs = 3_600_040
    expect(health.look()).toMatchObject({ status: 'ok', warnings: ['the clock of this machine is 3600.0 s ahead of that of the database'] })
    seen.clockOffsetMs = -2_500
    expect(health.look().warnings).toEqual(['the clock of this machine is 2.5 s behind that of the database'])
  })

  test('is degraded while the configuration file is not valid', () => {
    const { health } = arrange()
    health.configRead(false)
    expect(health.look()).toMatchObject({ status: 'degraded', config: { state: 'rejected' } })
    health.configRead(true)
    expect(health.look()).toMatchObject({ status: 'ok', config: { state: 'ok' } })
  })

  test('is ready between start and stop, while a commit is at most five seconds old', async () => {
    const { health, seen, clock } = arrange()
    expect(await health.notReady()).toBe('The daemon is starting')
    health.started()
    seen.store = { lastCommitMs: clock.monotonicMs(), fault: null }
    await clock.advance(5000)
    expect(await health.notReady()).toBeNull()
    expect(seen.probes).toBe(0)
    health.draining()
    expect(await health.notReady()).toBe('The daemon is stopping')
  })

  test('proves an idle daemon ready by one write for all callers at a time', async () => {
    const { health, seen, clock } = arrange()
    health.started()
    seen.store = { lastCommitMs: clock.monotonicMs(), fault: null }
    await clock.advance(5001)
    expect(await Promise.all([health.notReady(), health.notReady()])).toEqual([null, null])
    expect(seen.probes).toBe(1)
    seen.probe = async () => {
      throw new AppError('unavailable', 'The store cannot keep this now: database or disk is full')
    }
    expect(await health.notReady()).toBe('The store cannot keep this now: database or disk is full')
  })

  test('probes a store at fault although other writes are committed, and is ready a second after the last probe that was refused', async () => {
    const { health, seen, clock } = arrange()
    health.started()
    seen.store = { lastCommitMs: clock.monotonicMs(), fault: 'no space left on device' }
    seen.probe = async () => {
      throw new AppError('unavailable', 'no space left on device')
    }
    health.look()
    health.look()
    expect(seen.probes).toBe(1)
    expect(await health.notReady()).toBe('no space left on device')
    seen.probe = async () => {}
    // A full disk takes some messages in between.
    seen.store = { lastCommitMs: clock.monotonicMs(), fault: null }
    expect(await health.notReady()).toBe('The store refused to keep data within the last second')
    await clock.advance(1000)
    expect(await health.notReady()).toBeNull()
  })

  test('stays ready while a channel or the provider is down', async () => {
    const { health, seen, bus, clock } = arrange()
    health.started()
    seen.store = { lastCommitMs: clock.monotonicMs(), fault: null }
    seen.channel = 'down'
    bus.emit(failed('upstream'))
    expect(await health.notReady()).toBeNull()
  })

  test('starts a probe of an idle daemon at most twice a minute', async () => {
    const { health, seen, clock } = arrange()
    health.look()
    expect(seen.probes).toBe(0)
    health.started()
    for (let look = 0; look < 3; look++) health.look()
    expect(seen.probes).toBe(1)
    await clock.advance(30_001)
    health.look()
    expect(seen.probes).toBe(2)
  })
})
