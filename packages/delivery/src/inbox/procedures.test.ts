/** Messages for procedures, on a real store with a fake engine. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, type Channel, type Inbound, type SopDispatch, type SopEvent, type Sops, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { clientOf } from './admit-message.ts'
import { fireProcedures } from './procedures.ts'

const CHANNEL: Channel = {
  name: 'chatapp',
  allow: ['*'],
  limits: { text: 100, unit: 'utf16' },
  webhook: {
    path: '/chatapp',
    verify: () => ({ by: 'test' }),
    parse: () => [],
    sample: () => ({ headers: {}, body: '' }),
  },
  send: async () => ({ id: 'p' }),
}
const MESSAGE: Inbound = {
  id: 'm1',
  account: 'our-number',
  sender: '+15550002222',
  to: { to: '15550002222', replyTo: 'm1' },
  text: 'ship it',
  sentAtMs: 7,
}
const STARTED: SopDispatch = { sop: 'ship', status: 'started', runId: 'r1' }

let folder: string
let store: Store
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'by-sops-'))
  store = openStore({ file: join(folder, 'sluice.db'), clock: testClock(), log: testHost().log })
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

/** Stores a message and offers it to an engine that answers every event with `dispatched`. */
async function offer(dispatched: readonly SopDispatch[], channel = CHANNEL, engine = true, message = MESSAGE) {
  const fired: [event: SopEvent, also: unknown][] = []
  const kept = await store.inbox.keep({
    channel: channel.name,
    verdict: 'test',
    raw: null,
    receivedAtMs: 9,
    messages: [{ session: 's', message }],
  })
  const [number] = kept === 'replayed' ? [] : kept
  const sops: Pick<Sops, 'matches' | 'fire'> = {
    matches: (source, topic) => source === 'webhook' && topic === '/chatapp',
    async fire(event, also) {
      fired.push([event, also])
      return dispatched
    },
  }
  const options = { store, log: testHost().log, procedures: engine ? sops : undefined, clock: testClock(9) }
  const take = () => fireProcedures(options, channel, number ?? 0, message, clientOf(channel, message, []))
  return { taken: await take(), take, fired, number: number ?? 0 }
}

test('a procedure gets the message, its sender and the conversation to ask in', async () => {
  const { taken, fired, number } = await offer([STARTED])
  expect(taken).toBe(true)
  expect(fired).toEqual([
    [
      {
        source: 'webhook',
        topic: '/chatapp',
        payload: expect.any(String),
        atMs: 9,
        by: 'chatapp:+15550002222',
        standing: 'stranger',
        starter: 'channel:chatapp/our-number/%2B15550002222',
        origin: { channel: 'chatapp', account: 'our-number', to: MESSAGE.to, sender: '+15550002222' },
      },
      { inbox: number, repeats: true },
    ],
  ])
  const { id, account, sender, to, text, sentAtMs } = MESSAGE
  expect(JSON.parse(fired[0]?.[0].payload ?? '')).toEqual({ channel: 'chatapp', id, account, sender, to, text, sentAtMs })
})

test.each<[string, Channel, Inbound, SopEvent['standing']]>([
  ['an entry of the allowlist', { ...CHANNEL, allow: [MESSAGE.sender] }, MESSAGE, 'listed'],
  ['* alone', CHANNEL, MESSAGE, 'stranger'],
  ['an entry, in a message that proves no sender', { ...CHANNEL, allow: [MESSAGE.sender] }, { ...MESSAGE, unverified: true }, 'unverified'],
])('an event has the standing of a sender whom %s admits', async (_, channel, message, standing) => {
  const { fired } = await offer([STARTED], channel, true, message)
  expect(fired[0]?.[0]).toMatchObject({ standing })
})

test('a procedure that matches takes the message, even if a limit skips the run of another one', async () => {
  const skipped = { sop: 'ship', status: 'skipped', reason: 'it cools down' } as const
  expect((await offer([skipped, STARTED])).taken).toBe(true)
  expect((await offer([skipped], CHANNEL, true, { ...MESSAGE, id: 'm2' })).taken).toEqual({
    skippedFor: 'ship: it cools down',
  })
})

test('a message that no procedure has room for stays as it is', async () => {
  const { number } = await offer([])
  const sops: Pick<Sops, 'matches' | 'fire'> = {
    matches: () => true,
    fire: () => Promise.reject(new AppError('unavailable', 'full', { retryAfterSecs: 30 })),
  }
  const clock = testClock(9)
  const take = () =>
    fireProcedures(
      { store, log: testHost().log, procedures: sops, clock },
      ...([CHANNEL, number, MESSAGE, clientOf(CHANNEL, MESSAGE, [])] as const),
    )
  expect(await take()).toEqual({ ageMs: 0, reason: 'full' })
  await clock.advance(1000)
  expect(await take()).toEqual({ ageMs: 1000, reason: 'full' })
  expect(await store.inbox.get(number)).toMatchObject({ state: 'pending' })
})

test('a message that meets no condition is for the agent', async () => {
  expect((await offer([])).taken).toBe(false)
})

test('without an engine, a path or a trigger for the path no event is fired', async () => {
  const { webhook: _, ...connected } = CHANNEL
  const elsewhere = { ...CHANNEL, ...(CHANNEL.webhook && { webhook: { ...CHANNEL.webhook, path: '/other' as const } }) }
  for (const { taken, fired } of [
    await offer([STARTED], CHANNEL, false),
    await offer([STARTED], connected),
    await offer([STARTED], elsewhere),
  ]) {
    expect(taken).toBe(false)
    expect(fired).toEqual([])
  }
})

test('a message that has ended starts no procedure', async () => {
  const { number, take, fired } = await offer([])
  await store.inbox.done(number, 10)
  expect(await take()).toBe(false)
  expect(fired).toHaveLength(1)
})

test('a message that an operator replays starts its procedure again', async () => {
  const { number } = await offer([])
  let runs = 0
  const sops: Pick<Sops, 'matches' | 'fire'> = {
    matches: () => true,
    fire: async ({ key }, also) =>
      store.sops.start([startOf(sopRun(`r${++runs}`))], { atMs: 9, ...(key !== undefined && { key }), ...also }),
  }
  const take = () =>
    fireProcedures(
      { store, log: testHost().log, procedures: sops, clock: testClock(9) },
      CHANNEL,
      number,
      MESSAGE,
      clientOf(CHANNEL, MESSAGE, []),
    )
  const started = async () => (await store.sops.runs({ limit: 10 })).map(({ id }) => id)
  expect(await take()).toBe(true)
  expect(await take()).toBe(false)
  expect(await started()).toEqual(['r1'])
  expect(await store.inbox.replay(number)).toBe(true)
  expect(await take()).toBe(true)
  expect(await started()).toEqual(['r2', 'r1'])
})
