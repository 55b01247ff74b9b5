/** The channel on the gateway of the fake. */
import { AppError, type Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { qqSection } from './config.ts'
import feature from './index.ts'
import { BOT, type QqFake } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const START_MS = Date.UTC(2026, 0, 1)
let fake: QqFake
let section: object
let clock: TestClock
let host: TestHost
let listening: Listening
let received: Inbound[]
let storeError: AppError | undefined
let refused: number

const listen = (more: object = {}) => {
  const [channel] = feature.build(host, v.parse(qqSection.schema, { ...section, ...more })).channels ?? []
  if (!channel) throw new Error('The section of the fake builds no channel.')
  return startListening(channel, host, async (inbound) => {
    if (storeError) {
      refused += 1
      throw storeError
    }
    received.push(inbound)
  })
}
const ready = () => expect.poll(() => fake.gateway.ready).toBe(1)
const advancing = async (holds: () => boolean, interval = 50) =>
  expect
    .poll(
      async () => {
        await clock.advance(500)
        return holds()
      },
      { interval },
    )
    .toBe(true)
const texts = () => received.map(({ text }) => text)
const unique = () => [...new Set(texts())]

beforeEach(async () => {
  clock = testClock(START_MS)
  const made = await connect({ nowMs: clock.nowMs })
  fake = made.fake
  section = made.section
  ;[received, storeError, refused] = [[], undefined, 0]
  host = testHost({ fetch, clock, keyValue: memoryKeyValue() })
  listening = listen()
  await ready()
})
afterEach(async () => {
  await listening.stop()
  await fake.close()
})

test('asks for messages of people and groups, and for presses only where buttons are on', async () => {
  expect(fake.gateway.intents).toBe(1 << 25)
  await listening.stop()
  fake.gateway.forgetSessions()
  listening = listen({ buttons: true })
  await advancing(() => fake.gateway.identified === 2)
  expect(fake.gateway.intents).toBe((1 << 25) | (1 << 26))
})

test('a broken connection is resumed, and brings what was missed, without a gap', async () => {
  fake.say({ text: 'before' })
  await expect.poll(texts).toEqual(['before'])
  fake.cut()
  fake.say({ text: 'meanwhile' })
  await advancing(() => fake.gateway.resumed === 1)
  await expect.poll(unique).toEqual(['before', 'meanwhile'])
  expect(listening.gaps).toEqual([])
  expect(fake.gateway.identified).toBe(1)
})

test('an event that is not stored is not skipped by the next connection', async () => {
  storeError = new AppError('unavailable', 'the disk is full')
  fake.say({ text: 'one' })
  await expect.poll(() => refused).toBeGreaterThan(0)
  await listening.stop()
  storeError = undefined
  listening = listen()
  await advancing(() => received.length > 0)
  expect(unique()).toEqual(['one'])
})

test('a restart resumes the session, so messages meanwhile are not lost', async () => {
  fake.say({ text: 'before' })
  await expect.poll(texts).toEqual(['before'])
  await listening.stop()
  fake.say({ text: 'meanwhile' })
  listening = listen()
  await expect.poll(unique).toEqual(['before', 'meanwhile'])
  expect(listening.gaps).toEqual([])
})

test('a session that cannot be resumed is replaced, and the time span is reported', async () => {
  await clock.advance(60_000)
  fake.gateway.forgetSessions()
  fake.cut()
  await advancing(() => fake.gateway.identified === 2)
  await expect.poll(() => listening.gaps).toHaveLength(1)
  expect(listening.gaps[0]?.why).toContain('qq could not resume the session')
  // The channel notices the break with the next step of the clock.
  expect((listening.gaps[0]?.sinceMs ?? 0) - START_MS - 60_000).toBeLessThanOrEqual(500)
  fake.say({ text: 'after' })
  await expect.poll(texts).toEqual(['after'])
})

test('another session of the same bot never gets the number of the old one', async () => {
  for (const text of ['one', 'two', 'three']) fake.say({ text })
  await expect.poll(() => received.length).toBe(3)
  fake.gateway.forgetSessions()
  fake.cut()
  await advancing(() => fake.gateway.identified === 2)
  fake.cut()
  await advancing(() => fake.gateway.resumed === 1)
  expect(listening.health.state).toBe('ok')
})

test('a request for another connection resumes at once', async () => {
  fake.gateway.reconnect()
  await advancing(() => fake.gateway.resumed === 1)
  expect(listening.gaps).toEqual([])
})

test('heartbeats are sent in time', async () => {
  const startMs = clock.monotonicMs()
  for (let beats = 1; beats <= 4; beats++) await advancing(() => fake.gateway.heartbeats >= beats, 1)
  expect(clock.monotonicMs() - startMs).toBeLessThanOrEqual(180_000)
  expect(fake.gateway.opened).toBe(1)
})

test('a connection without an answer to a heartbeat is replaced within a minute', async () => {
  fake.gateway.mute()
  const startMs = clock.monotonicMs()
  await advancing(() => listening.health.state !== 'ok' || fake.gateway.opened === 2, 1)
  expect(clock.monotonicMs() - startMs).toBeLessThanOrEqual(70_000)
  await advancing(() => fake.gateway.opened === 2)
})

describe('a close', () => {
  test.each([
    [4014, 'apply for group and direct messages'],
    [4914, 'set sandbox = true'],
    [4915, 'banned'],
  ])('with %i is for the operator', async (code, detail) => {
    fake.gateway.closeAll(code)
    await advancing(() => listening.health.state === 'down')
    expect(listening.health.detail).toContain(detail)
  })

  test.each([4006, 4007, 4900])('with %i begins another session', async (code) => {
    fake.gateway.closeAll(code)
    await advancing(() => fake.gateway.identified === 2)
  })

  test('with 4009 resumes the session', async () => {
    fake.gateway.closeAll(4009)
    await advancing(() => fake.gateway.resumed === 1)
  })
})

test('an ended token is replaced before the next connection', async () => {
  fake.endTokens()
  fake.cut()
  await advancing(() => fake.gateway.resumed === 1)
  expect(fake.granted).toBe(2)
})

test('a wrong secret is for the operator, and does not appear', async () => {
  fake.changeSecret()
  fake.cut()
  await advancing(() => (listening.health.detail ?? '').includes('Check app_id and app_secret'))
  expect(JSON.stringify([host.logs, listening.health])).not.toContain(BOT.app_secret)
})

test('frames of an unknown kind disturb nothing', async () => {
  for (const frame of ['{', '[]', '{}', '{"op":99}', '{"op":0,"t":"X","s":"y","d":7}', '{"op":10}']) fake.gateway.raw(frame)
  fake.say({ text: 'still here' })
  await expect.poll(texts).toEqual(['still here'])
})

test('an address of another host is not connected to', async () => {
  fake.fail(
    { fault: 'status', status: 200, body: { url: 'wss://gateway.example.com' } },
    { times: 1000, matches: ({ path }) => path === '/gateway' },
  )
  fake.cut()
  await advancing(() => (listening.health.detail ?? '').includes('not its own'))
})
