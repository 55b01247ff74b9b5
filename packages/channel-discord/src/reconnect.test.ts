/** Broken connections: messages written in the meantime arrive once. */
import { describe, expect, test } from 'vitest'
import { discordHarness, receives, until } from './testing/harness.ts'

const harness = discordHarness()

describe('a connection that breaks', () => {
  test('is resumed, and missed messages arrive once', async () => {
    const listening = await harness.connect()
    harness.fake.say({ text: 'one' })
    await receives(listening, 'one')
    harness.fake.kick(1001)
    harness.fake.say({ text: 'two' })
    expect(listening.texts()).toEqual(['one'])
    await receives(listening, 'one', 'two')
    expect(harness.fake.happened).toContain('replayed 1')
    expect(harness.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test.each([4000, 4001, 4002, 4009])('is resumed after close code %i', async (code) => {
    const listening = await harness.connect()
    harness.fake.kick(code)
    harness.fake.say({ text: 'meanwhile' })
    await receives(listening, 'meanwhile')
  })

  test('is resumed when the platform asks for it, and messages before, during and after arrive once', async () => {
    const listening = await harness.connect()
    harness.fake.say({ text: 'before' })
    harness.fake.reconnect()
    // It arrives over the old connection or is replayed on the new one.
    harness.fake.say({ text: 'during' })
    await until(() => expect(harness.fake.happened).toContain('closed 4200'))
    harness.fake.say({ text: 'after' })
    await receives(listening, 'before', 'during', 'after')
    expect(harness.fake.happened).toContainEqual(expect.stringMatching(/^replayed [12]$/))
    expect(harness.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('keeps its session while the platform cannot be reached', async () => {
    const listening = await harness.connect()
    harness.fake.refuse(true)
    harness.fake.kick(1001)
    harness.fake.say({ text: 'meanwhile' })
    await until(async () => {
      await listening.retry()
      expect(harness.host.logs.map(({ message }) => message)).toContain('connection failed, trying again')
    })
    harness.fake.refuse(false)
    await until(async () => {
      await harness.host.advance(1000)
      expect(listening.texts()).toEqual(['meanwhile'])
    })
    expect(harness.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('starts a new session and fetches messages if it cannot be resumed', async () => {
    const listening = await harness.connect()
    harness.fake.say({ text: 'one' })
    await receives(listening, 'one')
    harness.fake.kick(1001, { forget: true })
    for (const text of ['two', 'three']) harness.fake.say({ text })
    await until(async () => {
      await harness.host.advance(1000)
      expect(listening.texts()).toEqual(['one', 'two', 'three'])
    })
    expect(harness.fake.happened).toContain('invalid session')
  })

  test('is resumed after it stopped answering heartbeats', async () => {
    await harness.start({ heartbeatMs: 50 })
    const listening = await harness.connect()
    const before = harness.fake.happened.length
    const since = () => harness.fake.happened.slice(before)
    harness.fake.muteAcks(true)
    await until(() => expect(since()).toContain('closed 4200'))
    harness.fake.muteAcks(false)
    harness.fake.say({ text: 'meanwhile' })
    await receives(listening, 'meanwhile')
    expect(since()).not.toContain('identify')
  })

  test('is reported as an outage while the platform cannot be reached, and the session is given up', async () => {
    const listening = await harness.connect()
    harness.fake.refuse(true)
    harness.fake.kick(1001)
    await until(async () => {
      await harness.host.advance(1000)
      expect(listening.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('The gateway closed the connection') })
    })
    const asked = harness.fake.requests.length
    await until(async () => {
      await harness.host.advance(30_000)
      expect(harness.fake.requests.length).toBeGreaterThan(asked)
    })
    harness.fake.refuse(false)
    await until(async () => {
      await harness.host.advance(60_000)
      expect(listening.health().state).toBe('ok')
    })
  })
})
