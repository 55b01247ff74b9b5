import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { within } from '@sluice/testkit/within'
import { afterEach, describe, expect, it } from 'vitest'
import { type BenchOptions, openTrigger, soon } from './testing/bench.ts'
import { fakeSops } from './testing/fake-sops.ts'
import { encode, encodePublish, TYPES } from './testing/packets.ts'
import { filtersOf, type Script, scriptedBroker } from './testing/scripted-broker.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function open(script: Script = {}, options: Partial<BenchOptions> = {}) {
  const broker = await scriptedBroker(script)
  cleanups.push(() => broker.close())
  const sops = fakeSops(['a'])
  const bench = await openTrigger(broker.url, { sops, waitMsMax: 10, ...options })
  cleanups.push(() => bench.close())
  const bodies = (type: number) => broker.received.filter((packet) => packet.type === type).map(({ body }) => body)
  const subscribed = () => bodies(TYPES.subscribe).map(filtersOf)
  /** Until the connection with this number, from 1, has subscribed. */
  const ready = (connection = 1) => soon(() => expect(subscribed().length).toBe(connection))
  const acked = () => bodies(TYPES.puback).map((body) => body.readUInt16BE(0))
  return { ...bench, broker, sops, bodies, subscribed, ready, acked }
}

describe('the same packet id again', () => {
  it('a repeat after an acknowledgement that got lost is the same event', async () => {
    const { broker, sops, ready, acked } = await open()
    broker.answerPings = false
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(acked()).toEqual([1]))
    broker.cut()
    await ready(2)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(acked()).toEqual([1, 1]))
    expect(sops.fired).toHaveLength(2)
    expect(sops.kept).toHaveLength(1)
  })

  it('a repeat of what never reached us is an event of its own, even where the message before it had the same id and content', async () => {
    const { broker, sops, keyValue, ready, acked } = await open()
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(acked()).toEqual([1]))
    await soon(async () => expect(await keyValue.list('inflight/', 10)).toEqual([]))
    broker.cut()
    await ready(2)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.kept).toHaveLength(2))
  })

  it('a message without the mark is an event of its own, at once', async () => {
    const { broker, sops, ready } = await open()
    await ready()
    for (let count = 1; count <= 3; count++) {
      broker.publish({ topic: 'a', payload: 'on', id: 1 })
      await soon(() => expect(sops.kept).toHaveLength(count))
    }
  })

  it('nothing counts of a session that the broker has forgotten, and its repeats are events of their own', async () => {
    let sessionPresent = true
    const { broker, sops, ready, keyValue } = await open({ sessionPresent: () => sessionPresent })
    broker.answerPings = false
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.kept).toHaveLength(1))
    sessionPresent = false
    broker.cut()
    await ready(2)
    expect(await keyValue.list('inflight/', 10)).toEqual([])
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.kept).toHaveLength(2))
  })

  it('nothing is received or subscribed before what the broker has forgotten is forgotten here', async () => {
    const keyValue = memoryKeyValue()
    let isPresent = true
    let held = Promise.resolve()
    const slow = { ...keyValue, delete: (key: string) => held.then(() => keyValue.delete(key)) }
    const { broker, sops, bodies, ready } = await open({ sessionPresent: () => isPresent }, { keyValue: slow })
    await ready()
    isPresent = false
    const { promise, resolve } = Promise.withResolvers<void>()
    held = promise
    broker.cut()
    await soon(() => expect(bodies(TYPES.connect)).toHaveLength(2))
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    // Nothing tells of what does not happen.
    await new Promise((done) => setTimeout(done, 50))
    expect(sops.fired).toEqual([])
    expect(bodies(TYPES.subscribe)).toHaveLength(1)
    resolve()
    await ready(2)
    await soon(() => expect(sops.fired).toHaveLength(1))
    expect(await keyValue.get('subscribed')).toEqual(['a'])
  })

  it('a refused connection says nothing about the session', async () => {
    const codes = [0, 3, 0]
    const { broker, sops, ready } = await open({ returnCode: () => codes.shift() ?? 0, sessionPresent: () => codes.length !== 1 })
    broker.answerPings = false
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.kept).toHaveLength(1))
    broker.cut()
    await ready(2)
    expect(broker.connections).toBe(3)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.fired).toHaveLength(2))
    expect(sops.kept).toHaveLength(1)
  })

  it('another client id is another session: what is remembered of the one says nothing about the other', async () => {
    const keyValue = memoryKeyValue()
    const first = await open({}, { keyValue })
    first.broker.answerPings = false
    await first.ready()
    first.broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(first.acked()).toEqual([1]))
    await first.close()
    const second = await open({}, { keyValue, config: { client_id: 'other' } })
    await second.ready()
    second.broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(second.sops.kept).toHaveLength(1))
    expect(second.sops.kept[0]?.key).not.toBe(first.sops.kept[0]?.key)
  })
})

describe('the connection', () => {
  it('the client id is made once, and the same after a restart', async () => {
    const keyValue = memoryKeyValue()
    const idOf = async () => {
      const { bodies, ready, close } = await open({}, { keyValue })
      await ready()
      await close()
      return /sluice-[\w-]{36}/.exec(bodies(TYPES.connect)[0]?.toString('latin1') ?? '')?.[0]
    }
    const id = await idOf()
    expect(id).toBeDefined()
    expect(await idOf()).toBe(id)
  })

  it('a refused subscription is told of by its topic, the others are made', async () => {
    const sops = fakeSops(['a', 'b', 'c'])
    const { said, broker, ready } = await open({ grant: (filter) => (filter === 'b' ? 128 : 1) }, { sops })
    await ready()
    await soon(() => expect(said('the broker refuses a subscription')).toMatchObject([{ level: 'error', fields: { topic: 'b' } }]))
    broker.publish({ topic: 'c', payload: 'x', id: 1 })
    await soon(() => expect(sops.kept).toHaveLength(1))
    expect(broker.connections).toBe(1)
  })

  it('a broker that grants less than QoS 1 is told of', async () => {
    const { said, ready } = await open({ grant: () => 0 })
    await ready()
    await soon(() => expect(said('the broker grants QoS 0 only: messages may get lost')).toHaveLength(1))
  })

  it('a packet that cannot be read ends the connection: what came with it comes again over the next one', async () => {
    const { broker, sops, ready, said } = await open()
    await ready()
    broker.send(Buffer.concat([encode(TYPES.pingresp, [], 5), encodePublish({ topic: 'a', payload: 'on', id: 1 })]))
    await ready(2)
    expect(said('the connection to the MQTT broker was lost')).toHaveLength(1)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.kept).toHaveLength(1))
  })

  it.each([
    ['PUBREL', [0x62, 0]],
    ['PUBLISH with QoS 2', [0x34, 3, 0, 1, 0x61]],
    ['PUBLISH with QoS 1', [0x32, 3, 0, 1, 0x61]],
  ])('a %s that lacks its packet id ends the connection and nothing else', async (_what, bytes) => {
    const { broker, ready } = await open()
    await ready()
    broker.send(Buffer.from(bytes))
    await ready(2)
  })

  it('a message that waits longer than the keep-alive time does not cost the connection', async () => {
    const { broker, sops, ready, bodies, said } = await open({}, { keepAliveSecs: 1 })
    const held = Promise.withResolvers<void>()
    sops.before = () => held.promise
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.fired).toHaveLength(1))
    await soon(() => expect(bodies(TYPES.pingreq).length).toBeGreaterThan(2))
    held.resolve()
    await soon(() => expect(sops.kept).toHaveLength(1))
    expect(said('the connection to the MQTT broker was lost')).toEqual([])
    expect(broker.connections).toBe(1)
  })

  it.each([
    ['says nothing', null, 0],
    ['is not ready', 3, 1],
  ])('close takes less than a second with a broker that %s', async (_what, code, told) => {
    const { broker, close, said } = await open({ returnCode: () => code }, { waitMsMax: 60_000 })
    await soon(() => expect(broker.received).toHaveLength(1))
    await soon(() => expect(said('the MQTT broker is out of reach')).toHaveLength(told))
    expect(await within(1000, close())).toBe('ended')
  })

  it('close takes less than a second with a broker that answers nothing any more', async () => {
    const { broker, close, ready } = await open({}, { waitMsMax: 60_000 })
    await ready()
    broker.answerPings = false
    expect(await within(1000, close())).toBe('ended')
  })

  it('close leaves a message that cannot be kept to the broker', async () => {
    const { broker, sops, ready, close, bodies, acked } = await open()
    sops.before = () => {
      throw new Error('full')
    }
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.fired.length).toBeGreaterThan(1))
    await close()
    await soon(() => expect(bodies(TYPES.disconnect)).toHaveLength(1))
    expect(acked()).toEqual([])
  })

  it('close lets a message that is being kept come to its acknowledgement', async () => {
    const { broker, sops, ready, close, bodies } = await open({}, { waitMsMax: 5000 })
    const held = Promise.withResolvers<void>()
    sops.before = () => held.promise
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.fired).toHaveLength(1))
    const closed = close()
    held.resolve()
    await closed
    await soon(() => expect(bodies(TYPES.disconnect)).toHaveLength(1))
    const order = broker.received.map(({ type }) => type).filter((type) => type === TYPES.puback || type === TYPES.disconnect)
    expect(order).toEqual([TYPES.puback, TYPES.disconnect])
  })

  it('where the store fails nothing is subscribed, and it is tried again', async () => {
    const keyValue = memoryKeyValue()
    let isFull = true
    const failing = {
      ...keyValue,
      set: async (key: string, value: unknown) =>
        isFull && key === 'subscribed' ? Promise.reject(new Error('full')) : keyValue.set(key, value),
    }
    const { broker, subscribed, ready } = await open({}, { keyValue: failing })
    await soon(() => expect(broker.connections).toBeGreaterThan(2))
    expect(subscribed()).toEqual([])
    isFull = false
    await ready()
  })
})
