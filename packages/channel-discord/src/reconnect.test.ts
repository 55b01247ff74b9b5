/** Connections that break: what is lost with them comes back, once. */
import { describe, expect, test } from 'vitest'
import { comes, discordBench, until } from './testing.ts'

const bench = discordBench()

describe('a connection that breaks', () => {
  test('is resumed: what was said meanwhile comes once', async () => {
    const listening = await bench.connect()
    bench.fake.say({ text: 'one' })
    await comes(listening, 'one')
    bench.fake.kick(1001)
    bench.fake.say({ text: 'two' })
    expect(listening.texts()).toEqual(['one'])
    await comes(listening, 'one', 'two')
    expect(bench.fake.happened).toContain('replayed 1')
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test.each([4000, 4001, 4002, 4009])('is resumed after %i', async (code) => {
    const listening = await bench.connect()
    bench.fake.kick(code)
    bench.fake.say({ text: 'meanwhile' })
    await comes(listening, 'meanwhile')
  })

  test('is resumed when the platform asks for it', async () => {
    const listening = await bench.connect()
    bench.fake.reconnect()
    bench.fake.say({ text: 'meanwhile' })
    await comes(listening, 'meanwhile')
    await until(() => expect(bench.fake.happened).toContain('replayed 0'))
  })

  test('keeps its session while the platform cannot be reached', async () => {
    const listening = await bench.connect()
    bench.fake.refuse(true)
    bench.fake.kick(1001)
    bench.fake.say({ text: 'meanwhile' })
    await until(() =>
      expect(bench.host.logs.filter(({ message }) => message === 'the gateway closed the connection').length).toBeGreaterThan(1),
    )
    bench.fake.refuse(false)
    await until(async () => {
      await bench.host.advance(1000)
      expect(listening.texts()).toEqual(['meanwhile'])
    })
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('is begun anew where it cannot be resumed, and the history is asked for what was said meanwhile', async () => {
    const listening = await bench.connect()
    bench.fake.say({ text: 'one' })
    await comes(listening, 'one')
    bench.fake.kick(1001, { forget: true })
    for (const text of ['two', 'three']) bench.fake.say({ text })
    await until(async () => {
      await bench.host.advance(1000)
      expect(listening.texts()).toEqual(['one', 'two', 'three'])
    })
    expect(bench.fake.happened).toContain('invalid session')
  })

  test('that is silent is noticed, and resumed', async () => {
    await bench.start({ heartbeatMs: 50 })
    const listening = await bench.connect()
    bench.fake.muteAcks(true)
    await until(() => expect(bench.fake.happened).toContain('closed 4200'))
    bench.fake.muteAcks(false)
    bench.fake.say({ text: 'meanwhile' })
    await comes(listening, 'meanwhile')
    expect(bench.fake.happened.filter((what) => what === 'identify')).toHaveLength(1)
  })

  test('and does not come back is given up after a few attempts, with pauses between them', async () => {
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
    expect(listening.channel.health?.()).toMatchObject({ state: 'down', detail: expect.stringContaining('does not hold') })
  })
})
