import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, it } from 'vitest'
import { createEventKeys } from './event-keys.ts'
import { createReceive, type Message } from './receive.ts'
import { fakeSops } from './testing/fake-sops.ts'

const message = (changes: Partial<Message> = {}): Message => ({
  topic: 'home/door',
  payload: Buffer.from('open'),
  packetId: 7,
  isRepeat: false,
  isRetained: false,
  ...changes,
})
const open = (topics = ['home/+']) => {
  const host = testHost()
  const sops = fakeSops(topics)
  return { host, sops, receive: createReceive(host, sops, createEventKeys(host.keyValue)), stop: new AbortController() }
}
const full = () => {
  throw new AppError('unavailable', 'the disk is full')
}

describe('receive', () => {
  it('§2.4 a message is an event of its topic, with its payload as text, from the broker', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message(), stop.signal)).toBe('settled')
    expect(sops.fired).toEqual([
      {
        source: 'mqtt',
        topic: 'home/door',
        payload: 'open',
        atMs: host.clock.nowMs(),
        by: 'broker',
        key: expect.stringMatching(/^mqtt:[\w-]{36}$/),
      },
    ])
  })

  it('bytes that are no UTF-8 are replaced, none is an empty text', async () => {
    const { sops, receive, stop } = open()
    await receive(message({ payload: Buffer.from([0x61, 0xff, 0x62]) }), stop.signal)
    await receive(message({ payload: Buffer.alloc(0) }), stop.signal)
    expect(sops.fired.map(({ payload }) => payload)).toEqual(['a\ufffdb', ''])
  })

  it('what is retained, or nobody waits for, is ignored and leaves no trace', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message({ isRetained: true }), stop.signal)).toBe('ignored')
    expect(await receive(message({ topic: 'garden/door' }), stop.signal)).toBe('ignored')
    expect(sops.fired).toEqual([])
    expect(await host.keyValue.list('', 10)).toEqual([])
    expect(host.logs.map(({ level }) => level)).toEqual(['debug', 'debug'])
  })

  it('a payload of more than 64 KiB is refused, one of as much is not', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message({ payload: Buffer.alloc(65_537, 'x') }), stop.signal)).toBe('ignored')
    expect(host.logs.map(({ level }) => level)).toEqual(['warn'])
    expect(await receive(message({ payload: Buffer.alloc(65_536, 'x') }), stop.signal)).toBe('settled')
    expect(sops.fired).toHaveLength(1)
  })

  it('what cannot be kept is tried again with the same key until it can be', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = full
    const received = receive(message(), stop.signal)
    await host.advance(120_000)
    expect(sops.fired.length).toBeGreaterThan(5)
    sops.before = () => undefined
    await host.advance(60_000)
    expect(await received).toBe('settled')
    expect(sops.kept).toHaveLength(1)
    expect(new Set(sops.fired.map(({ key }) => key)).size).toBe(1)
  })

  it('nothing is fired before its key is kept', async () => {
    const { host, sops, stop } = open()
    const receive = createReceive(host, sops, createEventKeys({ ...host.keyValue, set: async () => full() }))
    const received = receive(message(), stop.signal)
    await host.advance(60_000)
    stop.abort()
    expect(await received).toBe('kept')
    expect(sops.fired).toEqual([])
  })

  it('told to stop while a key is being kept, it fires nothing: the next connection may have given it another one', async () => {
    const { host, sops, stop } = open()
    const kept = Promise.withResolvers<void>()
    const receive = createReceive(host, sops, createEventKeys({ ...host.keyValue, set: () => kept.promise }))
    const received = receive(message(), stop.signal)
    stop.abort()
    kept.resolve()
    expect(await received).toBe('kept')
    expect(sops.fired).toEqual([])
  })

  it('told to stop, it leaves the message to the broker', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = full
    const received = receive(message(), stop.signal)
    await host.advance(0)
    stop.abort()
    expect(await received).toBe('kept')
  })

  it('an event that is refused for what it is would be refused for ever: it is dropped', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = () => {
      throw new AppError('invalid_request', 'no')
    }
    expect(await receive(message(), stop.signal)).toBe('settled')
    expect(host.logs.map(({ level }) => level)).toEqual(['error'])
  })
})

describe('event keys', () => {
  it('a repeat of the same message has the same key, also after a restart', async () => {
    const { keyValue } = testHost()
    const key = await createEventKeys(keyValue).keyOf(message())
    expect(await createEventKeys(keyValue).keyOf(message({ isRepeat: true }))).toBe(key)
  })

  it.each([
    ['is not marked as a repeat', { isRepeat: false }],
    ['has another packet id', { packetId: 8 }],
    ['has another topic', { topic: 'home/doo' }],
    ['has another payload', { payload: Buffer.from('ropen') }],
  ])('what %s is another event', async (_what, changes) => {
    const keys = createEventKeys(testHost().keyValue)
    const key = await keys.keyOf(message())
    expect(await keys.keyOf(message({ isRepeat: true, ...changes }))).not.toBe(key)
  })

  it('where a topic ends and a payload begins counts', async () => {
    const keys = createEventKeys(testHost().keyValue)
    const key = await keys.keyOf(message({ topic: 'a', payload: Buffer.from('bc') }))
    expect(await keys.keyOf(message({ topic: 'ab', payload: Buffer.from('c'), isRepeat: true }))).not.toBe(key)
  })

  it('what the broker knows to be acknowledged is forgotten, and all of it when it begins anew', async () => {
    const { keyValue } = testHost()
    const keys = createEventKeys(keyValue)
    for (const packetId of [1, 2, 3]) await keys.keyOf(message({ packetId }))
    await keys.forget([2])
    expect((await keyValue.list('', 10)).map(({ key }) => key)).toEqual(['inflight/1', 'inflight/3'])
    await keys.forgetAll()
    expect(await keyValue.list('', 10)).toEqual([])
  })

  it('what lies in the store and is no record is none', async () => {
    const { keyValue } = testHost()
    for (const value of [null, 1, {}, { hash: 1, key: 'k' }, []]) {
      await keyValue.set('inflight/7', value)
      expect(await createEventKeys(keyValue).keyOf(message({ isRepeat: true }))).toMatch(/^mqtt:/)
    }
  })

  it('with QoS 0 nothing is kept, as nothing comes again', async () => {
    const { keyValue } = testHost()
    expect(await createEventKeys(keyValue).keyOf(message({ packetId: undefined }))).toMatch(/^mqtt:/)
    expect(await keyValue.list('', 10)).toEqual([])
  })
})
