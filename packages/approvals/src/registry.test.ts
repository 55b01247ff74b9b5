import { People } from '@sluice/delivery'
import { createEventBus } from '@sluice/runtime'
import { eventSchema } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import { ApprovalRegistry } from './registry.ts'
import { openTestApprovals, type TestApprovals } from './testing/test-approvals.ts'

const open: TestApprovals[] = []
afterEach(async () => {
  for (const kept of open.splice(0)) await kept.close()
})

async function arrange(more: { readonly pendingMax?: number } = {}) {
  const clock = testClock()
  const host = testHost({ clock })
  const bus = createEventBus({ clock, run: 'test' })
  const kept = openTestApprovals({ bus, clock, log: host.log, ...more })
  open.push(kept)
  const { approvals, store } = kept
  await kept.start()
  const ask = (stepId: string, timeoutSecs = 0) =>
    approvals.open({ runId: 'r', stepId, gate: 'event', workflow: 'w', title: 't', message: 'm', timeoutSecs })
  return { clock, host, bus, approvals, store, ask }
}

test('refuses new approvals while too many wait, but accepts known ones', async () => {
  const { approvals, ask } = await arrange({ pendingMax: 2 })
  await ask('s1')
  await ask('s2')
  await expect(ask('s3')).rejects.toMatchObject({ code: 'unavailable' })
  expect(await ask('s2')).toMatchObject({ opened: false, asked: [] })
  await approvals.decide({ runId: 'r', stepId: 's1' }, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
  expect(await ask('s3')).toMatchObject({ opened: true })
})

test('keeps the limit for callers that open approvals at the same time', async () => {
  const { ask } = await arrange({ pendingMax: 2 })
  const asked = await Promise.allSettled(Array.from({ length: 6 }, (_, at) => ask(`s${at}`)))
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  expect(await ask('s0')).toMatchObject({ opened: false })
})

test('does not keep an approval that is decided while it is opened', async () => {
  const { approvals, ask } = await arrange({ pendingMax: 1 })
  const opening = ask('s1')
  await approvals.decide({ runId: 'r', stepId: 's1' }, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
  await opening
  await expect.poll(async () => (await approvals.get({ runId: 'r', stepId: 's1' }))?.acknowledgedAtMs).not.toBeNull()
  expect(await ask('s2')).toMatchObject({ opened: true })
})

test('sets one timer for all approvals and reads none before it fires', async () => {
  const { clock, approvals, ask, store } = await arrange()
  await Promise.all(Array.from({ length: 200 }, (_, index) => ask(`s${index}`, 600 + index)))
  expect(clock.sleeping).toBe(1)
  const expired = async () => (await store.approvals.list({ limit: 500, state: 'expired' })).length
  await clock.advance(599_999)
  expect(await expired()).toBe(0)
  await clock.advance(1)
  await expect.poll(expired).toBe(1)
  await expect.poll(() => clock.sleeping).toBe(1)
  await clock.advance(1000)
  await expect.poll(expired).toBe(2)
  expect(await approvals.get({ runId: 'r', stepId: 's2' })).toMatchObject({ state: 'pending' })
})

test('expires an approval later when the store fails', async () => {
  const { clock, host, bus } = await arrange()
  const { store, ownership } = open[0] ?? {}
  if (!store || !ownership) throw new Error('there is no store')
  let isFull = true
  const decide: typeof store.approvals.decide = (...args) =>
    isFull ? Promise.reject(new Error('the disk is full')) : store.approvals.decide(...args)
  const none = () => []
  const { log } = host
  const people = new People({ store, ownership, clock, events: bus, channels: none, operators: none })
  const deps = {
    people,
    bus,
    clock,
    log,
    channels: none,
    features: none,
    targets: none,
    operators: none,
    queued: () => {},
    ownership,
    actorName: async (by: string) => by,
  }
  const approvals = new ApprovalRegistry({ ...deps, inbox: store.inbox, store: { ...store.approvals, decide } })
  await approvals.start()
  await approvals.open({ runId: 'r', stepId: 's', gate: 'event', workflow: 'w', title: 't', message: 'm', timeoutSecs: 1 })
  await clock.advance(1000)
  expect(host.logs.filter(({ level }) => level === 'error')).toHaveLength(1)
  isFull = false
  await clock.advance(5000)
  await expect.poll(async () => (await store.approvals.get({ runId: 'r', stepId: 's' }))?.state).toBe('expired')
  await approvals.stop()
})

test('resolves decision for each waiter, at once for a decided approval, until its signal', async () => {
  const { approvals, ask } = await arrange()
  const key = { runId: 'r', stepId: 's' }
  const never = new AbortController()
  expect(await approvals.decision(key, never.signal)).toBeUndefined()
  await ask('s')
  const leaving = new AbortController()
  const left = approvals.decision(key, leaving.signal)
  leaving.abort()
  expect(await left).toBeUndefined()
  expect(await approvals.decision(key, leaving.signal)).toBeUndefined()
  const waits = [approvals.decision(key, never.signal), approvals.decision(key, never.signal)]
  await approvals.decide(key, { state: 'rejected', by: 'device:d1', who: { standing: 'listed', isAsked: true }, feedback: 'no' })
  expect(await Promise.all(waits)).toMatchObject([{ state: 'rejected' }, { state: 'rejected' }])
  expect(await approvals.decision(key, never.signal)).toMatchObject({ state: 'rejected', feedback: 'no' })
})

test('cannot decide an approval that was not opened', async () => {
  const { approvals } = await arrange()
  await expect(
    approvals.decide({ runId: 'r', stepId: 's' }, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } }),
  ).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('emits events that fit the schema of events', async () => {
  const { approvals, bus, ask } = await arrange()
  await ask('s', 60)
  await approvals.decide({ runId: 'r', stepId: 's' }, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
  await expect.poll(() => bus.seq).toBe(2)
  for (const { envelope } of bus.recent(9)) expect(v.is(eventSchema, envelope), envelope.type).toBe(true)
})
