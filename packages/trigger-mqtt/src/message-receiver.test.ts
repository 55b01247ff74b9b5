import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, it } from 'vitest'
import { EventKeys } from './event-keys.ts'
import { type Message, MessageReceiver } from './message-receiver.ts'
import { fakeSops } from './testing/fake-sops.ts'

const message = (changes: Partial<Message> = {}): Message => ({
  topic: 'home/door',
  payload: Buffer.from('open'),
  packetId: 7,
  isRepeat: false,
  isRetained: false,
  ...changes,
})
const receiveWith = (...[host, sops, keys]: ConstructorParameters<typeof MessageReceiver>) => {
  const receiver = new MessageReceiver(host, sops, keys)
  return (received: Message, signal: AbortSignal) => receiver.receive(received, signal)
}
const open = (topics = ['home/+']) => {
  const host = testHost()
  const sops = fakeSops(topics)
  return { host, sops, receive: receiveWith(host, sops, new EventKeys(host.keyValue)), stop: new AbortController() }
}
const full = () => {
  throw new AppError('unavailable', 'the disk is full')
}

describe('MessageReceiver', () => {
  it('fires an event with the topic and the payload as text', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message(), stop.signal)).toBe('handled')
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

  it('replaces bytes that are not UTF-8 and accepts an empty payload', async () => {
    const { sops, receive, stop } = open()
    await receive(message({ payload: Buffer.from([0x61, 0xff, 0x62]) }), stop.signal)
    await receive(message({ payload: Buffer.alloc(0) }), stop.signal)
    expect(sops.fired.map(({ payload }) => payload)).toEqual(['a\ufffdb', ''])
  })

  it('ignores retained messages and topics without a trigger', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message({ isRetained: true }), stop.signal)).toBe('ignored')
    expect(await receive(message({ topic: 'garden/door' }), stop.signal)).toBe('ignored')
    expect(sops.fired).toEqual([])
    expect(await host.keyValue.list('', 10)).toEqual([])
    expect(host.logs.map(({ level }) => level)).toEqual(['debug', 'debug'])
  })

  it('refuses a payload of more than 64 KiB', async () => {
    const { host, sops, receive, stop } = open()
    expect(await receive(message({ payload: Buffer.alloc(65_537, 'x') }), stop.signal)).toBe('ignored')
    expect(host.logs.map(({ level }) => level)).toEqual(['warn'])
    expect(await receive(message({ payload: Buffer.alloc(65_536, 'x') }), stop.signal)).toBe('handled')
    expect(sops.fired).toHaveLength(1)
  })

  it('retries with the same key until the runs are stored', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = full
    const received = receive(message(), stop.signal)
    await host.advance(120_000)
    expect(sops.fired.length).toBeGreaterThan(5)
    sops.before = () => undefined
    await host.advance(60_000)
    expect(await received).toBe('handled')
    expect(sops.stored).toHaveLength(1)
    expect(new Set(sops.fired.map(({ key }) => key)).size).toBe(1)
  })

  it('fires nothing before the key is stored', async () => {
    const { host, sops, stop } = open()
    const receive = receiveWith(host, sops, new EventKeys({ ...host.keyValue, set: async () => full() }))
    const received = receive(message(), stop.signal)
    await host.advance(60_000)
    stop.abort()
    expect(await received).toBe('interrupted')
    expect(sops.fired).toEqual([])
  })

  it('fires nothing when it is aborted while the key is being stored', async () => {
    const { host, sops, stop } = open()
    const kept = Promise.withResolvers<void>()
    const receive = receiveWith(host, sops, new EventKeys({ ...host.keyValue, set: () => kept.promise }))
    const received = receive(message(), stop.signal)
    stop.abort()
    kept.resolve()
    expect(await received).toBe('interrupted')
    expect(sops.fired).toEqual([])
  })

  it('leaves the message to the broker when it is aborted', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = full
    const received = receive(message(), stop.signal)
    await host.advance(0)
    stop.abort()
    expect(await received).toBe('interrupted')
  })

  it('drops an event that the procedures refuse', async () => {
    const { host, sops, receive, stop } = open()
    sops.before = () => {
      throw new AppError('invalid_request', 'no')
    }
    expect(await receive(message(), stop.signal)).toBe('handled')
    expect(host.logs.map(({ level }) => level)).toEqual(['error'])
  })
})

describe('EventKeys', () => {
  it('returns the same key for a repeated message, also after a restart', async () => {
    const { keyValue } = testHost()
    const key = await new EventKeys(keyValue).keyOf(message())
    expect(await new EventKeys(keyValue).keyOf(message({ isRepeat: true }))).toBe(key)
  })

  it.each([
    ['is not marked as a repeat', { isRepeat: false }],
    ['has another packet id', { packetId: 8 }],
    ['has another topic', { topic: 'home/doo' }],
    ['has another payload', { payload: Buffer.from('ropen') }],
  ])('returns another key for a message that %s', async (_name, changes) => {
    const keys = new EventKeys(testHost().keyValue)
    const key = await keys.keyOf(message())
    expect(await keys.keyOf(message({ isRepeat: true, ...changes }))).not.toBe(key)
  })

  it('distinguishes where the topic ends and the payload begins', async () => {
    const keys = new EventKeys(testHost().keyValue)
    const key = await keys.keyOf(message({ topic: 'a', payload: Buffer.from('bc') }))
    expect(await keys.keyOf(message({ topic: 'ab', payload: Buffer.from('c'), isRepeat: true }))).not.toBe(key)
  })

  it('forgets confirmed packet ids, or all of them', async () => {
    const { keyValue } = testHost()
    const keys = new EventKeys(keyValue)
    for (const packetId of [1, 2, 3]) await keys.keyOf(message({ packetId }))
    await keys.forget([2])
    expect((await keyValue.list('', 10)).map(({ key }) => key)).toEqual(['inflight/1', 'inflight/3'])
    await keys.forgetAll()
    expect(await keyValue.list('', 10)).toEqual([])
  })

  it('ignores malformed records', async () => {
    const { keyValue } = testHost()
    for (const value of [null, 1, {}, { hash: 1, key: 'k' }, []]) {
      await keyValue.set('inflight/7', value)
      expect(await new EventKeys(keyValue).keyOf(message({ isRepeat: true }))).toMatch(/^mqtt:/)
    }
  })

  it('stores nothing with QoS 0', async () => {
    const { keyValue } = testHost()
    expect(await new EventKeys(keyValue).keyOf(message({ packetId: undefined }))).toMatch(/^mqtt:/)
    expect(await keyValue.list('', 10)).toEqual([])
  })
})
