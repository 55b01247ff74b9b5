import { ALL_SHARDS, type SopRun } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { clock, eventually, HIGH, LOW, type Process, setUpProcesses, startProcess, writeProcedure } from '../testing/two-processes.ts'

setUpProcesses()

const PIPE = `[sop]
name = "pipe"
description = "x"
max_concurrent = 99
execution_mode = "deterministic"
[[triggers]]
type = "webhook"
path = "/go"
`
/** Enough runs that both processes own some, whatever the ids are. */
const RUNS = 32
const STEPS = '## Steps\n\n1. **Act**\n   - tools: act\n'

const fire = ({ runtime }: Process, key: string) =>
  runtime.sops()?.fire({ source: 'webhook', topic: '/go', payload: null, atMs: clock.nowMs(), by: 'test', standing: 'operator', key })

const runsOf = ({ runtime }: Process): Promise<SopRun[]> => runtime.store.sops.runs({ limit: 100 })

test('a run is driven by its owner alone, and a call under way is not marked as interrupted', async () => {
  writeProcedure('pipe', PIPE, STEPS)
  const gate = Promise.withResolvers<string>()
  const first = await startProcess({ shards: LOW, act: () => gate.promise })
  const second = await startProcess({ shards: HIGH, act: () => gate.promise })
  for (let event = 0; event < RUNS; event++) await fire(first, `event ${event}`)
  await eventually(() => expect(first.acted.length + second.acted.length).toBe(RUNS))
  expect(Math.min(first.acted.length, second.acted.length)).toBeGreaterThan(0)
  gate.resolve('acted')
  await eventually(async () => expect((await runsOf(first)).map(({ status }) => status)).toEqual(Array(RUNS).fill('completed')))
  expect(first.acted.length + second.acted.length).toBe(RUNS)
  const records = await first.runtime.store.sops.audit({ limit: 1000 })
  expect(records.filter(({ kind }) => kind === 'step_cut')).toEqual([])
})

test('one event that two processes get at once starts one run', async () => {
  writeProcedure('pipe', PIPE, STEPS)
  const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
  await Promise.all([fire(first, 'the event'), fire(second, 'the event')])
  await eventually(async () => expect((await runsOf(first)).map(({ status }) => status)).toEqual(['completed']))
  expect(first.acted.length + second.acted.length).toBe(1)
})

test('a takeover leaves the call of the earlier owner to a person and repeats nothing', async () => {
  writeProcedure('pipe', PIPE, STEPS)
  const gate = Promise.withResolvers<string>()
  const first = await startProcess({ shards: ALL_SHARDS, act: () => gate.promise })
  await fire(first, 'the event')
  await eventually(() => expect(first.acted).toHaveLength(1))
  const second = await startProcess({ shards: ALL_SHARDS })
  expect(first.runtime.ownership.held().map(({ lease }) => lease.mayAct())).not.toContain(true)
  gate.resolve('acted')
  await eventually(async () => {
    const records = await second.runtime.store.sops.audit({ limit: 100 })
    expect(records.map(({ kind }) => kind)).toContain('step_cut')
  })
  expect([first.acted, second.acted]).toEqual([['act'], []])
})
