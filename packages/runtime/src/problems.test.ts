import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeRecord } from '@sluice/backup'
import type { Channel, Vitals } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, expect, test } from 'vitest'
import { createEventBus } from './events/event-bus.ts'
import { createHealthWatch } from './health.ts'
import { problemsOf } from './problems.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

const DAY_MS = 86_400_000
const failed = (error: string) => ({ type: 'turn_failed', turn_id: 't', session_id: null, source: 'ws', code: 'upstream', error }) as const

function arrange() {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-problems-'))
  folders.push(dataDir)
  const clock = testClock()
  const bus = createEventBus({ clock, run: 'test' })
  const seen = { channel: 'ok', fault: null as string | null, held: 2, sandbox: null as Vitals['sandbox'], failedFeature: false }
  const channels = [{ name: 'roomchat', health: () => ({ state: seen.channel, detail: 'the token is wrong' }) } as unknown as Channel]
  const links = () => []
  const health = createHealthWatch({
    clock,
    bus,
    store: { health: () => ({ lastCommitMs: null, fault: seen.fault }), probe: async () => {} },
    snapshot: () => ({ channels, links, gateway: { require_pairing: true } as never }),
    leases: () => ({ held: seen.held, wanted: 2 }),
    sandbox: () => undefined,
  })
  health.started()
  const backup = (record: Parameters<typeof writeRecord>[1]) => writeRecord(dataDir, record)
  const problems = () => {
    const features = seen.failedFeature ? [{ feature: 'tool-x', state: 'failed', reason: 'no board' }] : []
    return problemsOf({ health, dataDir, clock, vitals: () => ({ sandbox: seen.sandbox }) }, { channels, links, features } as never)
  }
  return { clock, bus, seen, health, problems, backup, at: (ms: number) => new Date(ms).toISOString() }
}

test('a daemon that works has no problem', () => {
  expect(arrange().problems()).toEqual([])
})

test('a provider that fails has its newest reason, and the time of its first failure, until a turn has an answer', async () => {
  const { clock, bus, problems, at } = arrange()
  const sinceMs = clock.nowMs()
  bus.emit(failed('m answered 503'))
  await clock.advance(60_000)
  bus.emit(failed('m could not be reached'))
  expect(problems()).toMatchObject([
    { about: 'provider', state: 'failing', text: 'The provider does not answer: m could not be reached', since: at(sinceMs) },
  ])
  const end = { took_ms: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0, finish_reason: 'stop', model: 'm' } as const
  bus.emit({ type: 'turn_completed', turn_id: 't', session_id: null, source: 'ws', ...end })
  expect(problems()).toEqual([])
})

test('a refused configuration has its reason until a valid one is read', () => {
  const { bus, health, problems } = arrange()
  health.configRead(false)
  bus.emit({ type: 'config_rejected', error: 'config.toml:3: provider.kind is not known' })
  expect(problems()).toMatchObject([{ about: 'config', state: 'warning', text: expect.stringContaining('config.toml:3: provider.kind') }])
  health.configRead(true)
  expect(problems()).toEqual([])
})

test('a channel has its reason, and when it went down', async () => {
  const { clock, bus, seen, problems, at } = arrange()
  const sinceMs = clock.nowMs()
  bus.emit({ type: 'channel_health', channel: 'roomchat', state: 'down', detail: null })
  await clock.advance(5000)
  bus.emit({ type: 'channel_health', channel: 'roomchat', state: 'degraded', detail: null })
  seen.channel = 'down'
  expect(problems()).toMatchObject([
    { about: 'channel', name: 'roomchat', text: 'roomchat is down: the token is wrong.', since: at(sinceMs) },
  ])
  seen.channel = 'ok'
  bus.emit({ type: 'channel_health', channel: 'roomchat', state: 'ok', detail: null })
  expect(problems()).toEqual([])
})

test('store, leases, features and the sandbox are named, and what stops work comes first', () => {
  const { seen, problems } = arrange()
  Object.assign(seen, { fault: 'database or disk is full', held: 1, failedFeature: true })
  seen.sandbox = { backend: 'none', state: 'unconfined', detail: 'no sandbox works here' }
  expect(problems().map(({ about, state }) => [about, state])).toEqual([
    ['store', 'failing'],
    ['cluster', 'failing'],
    ['feature', 'failing'],
    ['sandbox', 'warning'],
  ])
  expect(problems()[0]?.text).toBe('The store cannot write: database or disk is full.')
})

test('a channel that is not there and for which messages wait is named until none waits', () => {
  const { clock, bus, problems, at } = arrange()
  const about = { type: 'channel_health', channel: 'gone' } as const
  bus.emit({ ...about, state: 'down', detail: 'it was removed; 2 messages wait' })
  expect(problems()).toMatchObject([
    {
      about: 'channel',
      name: 'gone',
      state: 'failing',
      text: 'gone is not there: it was removed; 2 messages wait.',
      since: at(clock.nowMs()),
    },
  ])
  bus.emit({ ...about, state: 'ok', detail: null })
  expect(problems()).toEqual([])
})

test('a clock that was set is named for an hour', async () => {
  const { clock, bus, health, problems } = arrange()
  bus.emit({ type: 'clock_jumped', ms: -7_200_000 })
  expect(problems()).toMatchObject([{ about: 'clock', text: expect.stringContaining('set back by 7200 s') }])
  expect(health.look().warnings).toEqual([expect.stringContaining('the clock of the machine jumped')])
  await clock.advance(3_600_000)
  expect(problems()).toEqual([])
})

test('a failed or old backup is named', async () => {
  const { clock, backup, problems, at } = arrange()
  const last = { at: at(clock.nowMs()), file: 'b.tar', bytes: 1, encrypted: false, with_secrets: false }
  backup({ last, failure: null })
  expect(problems()).toEqual([])
  backup({ last, failure: { at: at(clock.nowMs()), error: 'no space left' } })
  expect(problems()).toMatchObject([{ about: 'backup', text: 'The last backup failed: no space left' }])
  backup({ last, failure: null })
  await clock.advance(9 * DAY_MS)
  expect(problems()).toMatchObject([{ about: 'backup', text: expect.stringContaining('more than 8 days old') }])
})
