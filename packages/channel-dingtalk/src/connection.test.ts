/** The channel in stream mode against the fake. */
import { AppError, type Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dingtalkSection } from './config.ts'
import feature from './index.ts'
import { CLIENT, type DingtalkFake } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const START_MS = Date.UTC(2026, 0, 1)
let fake: DingtalkFake
let section: object
let clock: TestClock
let host: TestHost
let listening: Listening
let received: Inbound[]
let storeError: AppError | undefined
let refused: number

const channelOf = () => {
  const [channel] = feature.build(host, v.parse(dingtalkSection.schema, section)).channels ?? []
  if (!channel) throw new Error('The section of the fake builds no channel.')
  return channel
}
const listen = () =>
  startListening(channelOf(), host, async (inbound) => {
    if (storeError) {
      refused += 1
      throw storeError
    }
    received.push(inbound)
  })
const connections = (count: number) => expect.poll(() => fake.stream.open).toBe(count)
/** The fake has a connection before the channel knows of it. */
const connected = async () => {
  await connections(1)
  await expect.poll(() => listening.health.state).toBe('ok')
}
const advancing = async (holds: () => boolean) =>
  expect
    .poll(async () => {
      await clock.advance(500)
      return holds()
    })
    .toBe(true)
const texts = () => received.map(({ text }) => text)

beforeEach(async () => {
  clock = testClock(START_MS)
  const made = await connect({ nowMs: clock.nowMs, keepMs: 0 })
  fake = made.fake
  section = made.section
  ;[received, storeError, refused] = [[], undefined, 0]
  host = testHost({ fetch, clock, keyValue: memoryKeyValue() })
  listening = listen()
  await connected()
})
afterEach(async () => {
  await listening.stop()
  await fake.close()
})

test('acknowledges a message once it is stored, in the order of arrival', async () => {
  storeError = new AppError('unavailable', 'the disk is full')
  for (const text of ['one', 'two', 'three']) fake.say({ text })
  await expect.poll(() => refused).toBeGreaterThan(0)
  expect(fake.stream.acknowledged).toEqual([])
  storeError = undefined
  await advancing(() => received.length === 3)
  expect(texts()).toEqual(['one', 'two', 'three'])
  await expect.poll(() => fake.stream.acknowledged).toHaveLength(3)
})

test('a ping is answered with its opaque while a message waits for the store', async () => {
  storeError = new AppError('unavailable', 'the disk is full')
  fake.say({ text: 'one' })
  await expect.poll(() => refused).toBeGreaterThan(0)
  fake.stream.system('ping', { opaque: '123-dsfs' })
  await expect.poll(() => fake.stream.pongs).toBe(1)
})

test('an announced end is followed by another connection first, so nothing is missed', async () => {
  fake.stream.system('disconnect', { reason: 'connection is expired' })
  await advancing(() => fake.stream.opened === 2)
  fake.say({ text: 'meanwhile' })
  await expect.poll(texts).toEqual(['meanwhile'])
  await advancing(() => fake.stream.open === 1)
  expect(listening.gaps).toEqual([])
})

test('a break reports the time span of which DingTalk kept no messages', async () => {
  fake.say({ text: 'before' })
  await expect.poll(texts).toEqual(['before'])
  await clock.advance(60_000)
  fake.cut()
  await connections(0)
  await expect.poll(() => listening.health.state).not.toBe('ok')
  fake.say({ text: 'lost' })
  await advancing(() => fake.stream.open === 1)
  fake.say({ text: 'after' })
  await expect.poll(texts).toEqual(['before', 'after'])
  expect(listening.gaps).toEqual([
    { sinceMs: START_MS + 60_000, why: 'dingtalk promises to keep no messages for a robot that is not connected' },
  ])
})

test('a restart reports the time span, too', async () => {
  await listening.stop()
  await clock.advance(600_000)
  listening = listen()
  await connected()
  await expect.poll(() => listening.gaps).toHaveLength(1)
  expect(listening.gaps[0]?.sinceMs).toBe(START_MS)
})

test('events and frames of an unknown kind disturb nothing', async () => {
  const event = { specVersion: '1.0', type: 'EVENT', headers: { topic: '*', messageId: 'e-1' }, data: '{}' }
  for (const frame of ['{', '[]', '{}', '{"type":"CALLBACK"}', '{"type":"SYSTEM","headers":7}', JSON.stringify(event)])
    fake.stream.raw(frame)
  fake.say({ text: 'still here' })
  await expect.poll(texts).toEqual(['still here'])
})

test('a wrong secret is refused for the operator to correct, and does not appear', async () => {
  fake.changeSecret()
  fake.cut()
  await advancing(() => listening.health.state === 'down' && (listening.health.detail ?? '').includes('authFailed'))
  expect(listening.health.detail).toContain('Check client_id and client_secret')
  expect(JSON.stringify([host.logs, listening.health])).not.toContain(CLIENT.client_secret)
})

test('too many calls do not count as a wrong secret', async () => {
  const body = { code: 'Forbidden.AccessDenied.QpsLimitForApi', message: 'too many' }
  fake.fail({ fault: 'status', status: 403, body }, { times: 1 })
  fake.cut()
  await advancing(() => fake.stream.open === 1)
})

test('an address of another host is not connected to', async () => {
  const body = { endpoint: 'wss://gateway.example.com/connect', ticket: 'ticket' }
  fake.fail({ fault: 'status', status: 200, body }, { times: 1_000 })
  fake.cut()
  await advancing(() => (listening.health.detail ?? '').includes('not its own'))
})
