import { expect, test } from 'vitest'
import { createHealthWatch } from '../health.ts'
import { noSandbox } from '../sandbox/no-sandbox.ts'
import { checkDaemon, checkWarnings } from './check-daemon.ts'

test('checkWarnings files an ignored forwarding header under proxy', () => {
  const health = createHealthWatch({
    clock: { monotonicMs: () => 0, nowMs: () => 0 },
    store: { health: () => ({ lastCommitMs: null, fault: null }), probe: async () => {} },
    bus: { observe: () => {} },
    snapshot: () => ({ channels: [], links: () => [], gateway: { require_pairing: true } as never }),
    leases: () => ({ held: 1, wanted: 1 }),
    sandbox: () => ({ sandbox: noSandbox, probes: [], isFinal: true, warning: 'it is switched off' }),
  })
  expect(checkWarnings(health.look())).toEqual([
    { check: 'daemon', status: 'warn', detail: expect.stringContaining('without a sandbox'), fix: expect.not.stringContaining('proxies') },
  ])
  health.ignoredForwarding.add('trusted_proxies')
  expect(checkWarnings(health.look())[0]).toMatchObject({ check: 'proxy', detail: expect.stringContaining('share one rate limit') })
  expect(checkWarnings(undefined)).toEqual([])
})

test('checkDaemon warns of the inputs that a model has refused', () => {
  expect(checkDaemon({ running: true, model_limits: ['ollama:gemma3 does not support tools'] })).toMatchObject([
    { check: 'model', status: 'warn', detail: expect.stringContaining('ollama:gemma3 does not support tools') },
    { check: 'daemon', status: 'ok' },
  ])
})
