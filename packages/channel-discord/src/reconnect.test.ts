/** Broken connections: messages written in the meantime arrive once. */
import { describe, expect, test } from 'vitest'
import { discordBench, receives, until } from './testing.ts'

const bench = discordBench()

describe('a connection that breaks', () => {
  test('is resumed, and missed messages arrive once', async () => {
    const listening = await bench.connect()
    bench.fake.say({ text: 'one' })
    await receives(listening, 'one')
    bench.fake.kick(1001)
    bench.fake.say({ text: 'two' })
    expect(listening.texts()).toEqual(['one'])
    await receives(listening, 'one', 'two')
    expect(bench.fake.happened).toContain('replayed 1')
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test.each([4000, 4001, 4002, 4009])('is resumed after close code %i', async (code) => {
    const listening = await bench.connect()
    bench.fake.kick(code)
    bench.fake.say({ text: 'meanwhile' })
    await receives(listening, 'meanwhile')
  })

  test('is resumed when the platform asks for it', async () => {
    const listening = await bench.connect()
    bench.fake.reconnect()
    bench.fake.say({ text: 'meanwhile' })
    await receives(listening, 'meanwhile')
    await until(() => expect(bench.fake.happened).toContain('replayed 0'))
  })

  test('keeps its session while the platform cannot be reached', async () => {
    const listening = await bench.connect()
    bench.fake.refuse(true)
    bench.fake.kick(1001)
    bench.fake.say({ text: 'meanwhile' })
    await until(() =>
      expect(bench.host.logs.filter(({ message }) => message === 'gateway closed the connection').length).toBeGreaterThan(1),
    )
    bench.fake.refuse(false)
    await until(async () => {
      await bench.host.advance(1000)
      expect(listening.texts()).toEqual(['meanwhile'])
    })
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('starts a new session and fetches messages if it cannot be resumed', async () => {
    const listening = await bench.connect()
    bench.fake.say({ text: 'one' })
    await receives(listening, 'one')
    bench.fake.kick(1001, { forget: true })
    for (const text of ['two', 'three']) bench.fake.say({ text })
    await until(async () => {
      await bench.host.advance(1000)
      expect(listening.texts()).toEqual(['one', 'two', 'three'])
    })
    expect(bench.fake.happened).toContain('invalid session')
  })

  test('is resumed after it stopped answering heartbeats', async () => {
    await bench.start({ heartbeatMs: 50 })
    const listening = await bench.connect()
    bench.fake.muteAcks(true)
    await until(() => expect(bench.fake.happened).toContain('closed 4200'))
    bench.fake.muteAcks(false)
    bench.fake.say({ text: 'meanwhile' })
    await receives(listening, 'meanwhile')
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('is given up after a few attempts with delays between them', async () => {
    const listening = await bench.connect()
    bench.fake.refuse(true)
    bench.fake.kick(1001)
    let ended: unknown
    void listening.ended.then((error) => {
      ended = error
    })
    await until(async () => {
      await bench.host.advance(30_000)
      expect(ended).toMatchObject({ code: 'unavailable' })
    })
    expect(listening.channel.health?.()).toMatchObject({ state: 'down', detail: expect.stringContaining('closed 5 connections in a row') })
  })
})
