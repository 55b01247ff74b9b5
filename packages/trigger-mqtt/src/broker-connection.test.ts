import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterEach, describe, expect, it } from 'vitest'
import { fakeSops } from './testing/fake-sops.ts'
import { openTrigger, soon, type TriggerOptions } from './testing/open-trigger.ts'
import { encode, encodePublish, TYPES } from './testing/packets.ts'
import { filtersOf, type Script, scriptedBroker } from './testing/scripted-broker.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function open(script: Script = {}, options: Partial<TriggerOptions> = {}) {
  const broker = await scriptedBroker(script)
  cleanups.push(() => broker.close())
  const sops = fakeSops(['a'])
  const trigger = await openTrigger(broker.url, { sops, waitMsMax: 10, ...options })
  cleanups.push(() => trigger.close())
  const bodies = (type: number) => broker.received.filter((packet) => packet.type === type).map(({ body }) => body)
  const subscribed = () => bodies(TYPES.subscribe).map(filtersOf)
  /** Waits until the connection with this number, counted from 1, has subscribed. */
  const ready = (connection = 1) => soon(() => expect(subscribed().length).toBe(connection))
  const acked = () => bodies(TYPES.puback).map((body) => body.readUInt16BE(0))
  return { ...trigger, broker, sops, bodies, subscribed, ready, acked }
}

describe('a repeated packet id', () => {
  it('is the same event after a lost acknowledgement', async () => {
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
    expect(sops.stored).toHaveLength(1)
  })

  it('is a new event after a confirmed acknowledgement', async () => {
    const { broker, sops, keyValue, ready, acked } = await open()
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(acked()).toEqual([1]))
    await soon(async () => expect(await keyValue.list('inflight/', 10)).toEqual([]))
    broker.cut()
    await ready(2)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.stored).toHaveLength(2))
  })

  it('is a new event without the repeat flag', async () => {
    const { broker, sops, ready } = await open()
    await ready()
    for (let count = 1; count <= 3; count++) {
      broker.publish({ topic: 'a', payload: 'on', id: 1 })
      await soon(() => expect(sops.stored).toHaveLength(count))
    }
  })

  it('is a new event after the broker has forgotten the session', async () => {
    let sessionPresent = true
    const { broker, sops, ready, keyValue } = await open({ sessionPresent: () => sessionPresent })
    broker.answerPings = false
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.stored).toHaveLength(1))
    sessionPresent = false
    broker.cut()
    await ready(2)
    expect(await keyValue.list('inflight/', 10)).toEqual([])
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.stored).toHaveLength(2))
  })

  it('may have been lost with a session that the broker forgot, which the log says', async () => {
    let sessionPresent = false
    const { broker, ready, logged, keyValue } = await open({ sessionPresent: () => sessionPresent })
    await ready()
    await soon(async () => expect(await keyValue.get('subscribed')).toEqual(['a']))
    expect(logged('messages may be missing')).toEqual([])
    sessionPresent = true
    broker.cut()
    await ready(2)
    expect(logged('messages may be missing')).toEqual([])
    sessionPresent = false
    broker.cut()
    await ready(3)
    expect(logged('messages may be missing')).toMatchObject([
      { level: 'warn', fields: { reason: expect.stringContaining('lost the session') } },
    ])
  })

  it('is not taken before the records of a forgotten session are deleted', async () => {
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
    // The absence of an event has no signal to wait for.
    await new Promise((done) => setTimeout(done, 50))
    expect(sops.fired).toEqual([])
    expect(bodies(TYPES.subscribe)).toHaveLength(1)
    resolve()
    await ready(2)
    await soon(() => expect(sops.fired).toHaveLength(1))
    expect(await keyValue.get('subscribed')).toEqual(['a'])
  })

  it('is the same event after a refused connection', async () => {
    const codes = [0, 3, 0]
    const { broker, sops, ready } = await open({ returnCode: () => codes.shift() ?? 0, sessionPresent: () => codes.length !== 1 })
    broker.answerPings = false
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.stored).toHaveLength(1))
    broker.cut()
    await ready(2)
    expect(broker.connections).toBe(3)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.fired).toHaveLength(2))
    expect(sops.stored).toHaveLength(1)
  })

  it('is a new event under another client id', async () => {
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
    await soon(() => expect(second.sops.stored).toHaveLength(1))
    expect(second.sops.stored[0]?.key).not.toBe(first.sops.stored[0]?.key)
  })
})

describe('BrokerConnection', () => {
  it('uses the same random client id after a restart', async () => {
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

  it('logs a refused subscription and makes the others', async () => {
    const sops = fakeSops(['a', 'b', 'c'])
    const { logged, broker, ready } = await open({ grant: (filter) => (filter === 'b' ? 128 : 1) }, { sops })
    await ready()
    await soon(() => expect(logged('MQTT broker refused a subscription')).toMatchObject([{ level: 'error', fields: { topic: 'b' } }]))
    broker.publish({ topic: 'c', payload: 'x', id: 1 })
    await soon(() => expect(sops.stored).toHaveLength(1))
    expect(broker.connections).toBe(1)
  })

  it('logs a broker that grants less than QoS 1', async () => {
    const { logged, ready } = await open({ grant: () => 0 })
    await ready()
    await soon(() => expect(logged('MQTT broker grants only QoS 0, messages may be lost')).toHaveLength(1))
  })

  it('ends after a malformed packet and loses no later message', async () => {
    const { broker, sops, ready, logged } = await open()
    await ready()
    broker.send(Buffer.concat([encode(TYPES.pingresp, [], 5), encodePublish({ topic: 'a', payload: 'on', id: 1 })]))
    await ready(2)
    expect(logged('connection lost')).toHaveLength(1)
    broker.publish({ topic: 'a', payload: 'on', id: 1, dup: true })
    await soon(() => expect(sops.stored).toHaveLength(1))
  })

  it.each([
    ['PUBREL', [0x62, 0]],
    ['PUBLISH with QoS 2', [0x34, 3, 0, 1, 0x61]],
    ['PUBLISH with QoS 1', [0x32, 3, 0, 1, 0x61]],
  ])('ends after a %s without a packet id', async (_name, bytes) => {
    const { broker, ready } = await open()
    await ready()
    broker.send(Buffer.from(bytes))
    await ready(2)
  })

  it('survives a message that takes longer than the keep-alive time', async () => {
    const { broker, sops, ready, bodies, logged } = await open({}, { keepAliveSecs: 1 })
    const held = Promise.withResolvers<void>()
    sops.before = () => held.promise
    await ready()
    broker.publish({ topic: 'a', payload: 'on', id: 1 })
    await soon(() => expect(sops.fired).toHaveLength(1))
    await soon(() => expect(bodies(TYPES.pingreq).length).toBeGreaterThan(2))
    held.resolve()
    await soon(() => expect(sops.stored).toHaveLength(1))
    expect(logged('connection lost')).toEqual([])
    expect(broker.connections).toBe(1)
  })

  it.each([
    ['does not answer', null, 0],
    ['is not ready', 3, 1],
  ])('closes within a second with a broker that %s', async (_name, code, logLines) => {
    const { broker, closeMs, logged } = await open({ returnCode: () => code }, { waitMsMax: 60_000 })
    await soon(() => expect(broker.received).toHaveLength(1))
    await soon(() => expect(logged('connection failed, trying again')).toHaveLength(logLines))
    expect(await closeMs()).toBeLessThan(1000)
  })

  it('closes within a second with a broker that stopped answering', async () => {
    const { broker, closeMs, ready } = await open({}, { waitMsMax: 60_000 })
    await ready()
    broker.answerPings = false
    expect(await closeMs()).toBeLessThan(1000)
  })

  it('leaves a message whose runs cannot be stored to the broker on close', async () => {
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

  it('acknowledges a message that is being stored on close', async () => {
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

  it('subscribes to nothing while the store fails, and tries again', async () => {
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
