/** Rules for storing incoming messages. */
import { expect } from 'vitest'
import { answerOne, arrival, arrivalOf, bodyArrival, bodyOf, inbound, keepOne, STARTS_MAX } from './delivery-samples.ts'
import { ODD_TEXTS } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

export const arrivalRules: StoreRules = {
  'a stored message is unchanged in another process': async ({ store: { inbox }, otherProcess }) => {
    const message = inbound('m1', {
      to: { to: 'room', replyTo: 'm0', more: { a: 'b' } },
      attachments: [{ kind: 'image', name: 'a.png', mime: 'image/png', source: { id: 'f1' } }],
    })
    const kept = await inbox.keep(arrivalOf(message))
    expect(kept).toEqual([expect.any(Number)])
    const number = Number(kept[0])
    const entry = {
      number,
      channel: 'roomchat',
      account: 'bot',
      messageId: 'm1',
      sender: '+15550100',
      session: 'roomchat:room',
      state: 'pending',
      attempts: 0,
      receivedAtMs: 1_000,
      nextAtMs: null,
      endedAtMs: null,
      turnId: null,
      error: null,
      verdict: 'signature',
      raw: null,
      message,
      replies: [],
    }
    expect(await inbox.get(number)).toEqual(entry)
    expect(await (await otherProcess()).inbox.get(number)).toEqual(entry)
    expect(await inbox.get(number + 1)).toBeUndefined()
  },

  'a request has its body instead of the message, unchanged in another process': async ({ store: { inbox }, otherProcess }) => {
    const raw = Uint8Array.of(0, 255, 7)
    const [number = 0] = (await inbox.keep(arrivalOf(inbound('m1'), { raw }))) as number[]
    for (const one of [inbox, (await otherProcess()).inbox])
      expect(await one.get(number)).toMatchObject({ messageId: 'm1', sender: '+15550100', raw, message: null })
  },

  'a message is found by its channel, account and id': async ({ store: { inbox }, otherProcess }) => {
    const [number = 0] = (await inbox.keep(
      arrival('m1', { messages: [{ message: inbound('m1'), session: 's', kind: 'turn' }] }),
    )) as number[]
    const found = await (await otherProcess()).inbox.find('roomchat', { account: 'bot', id: 'm1' })
    expect(found).toMatchObject({ number, session: 's', kind: 'turn', message: inbound('m1') })
    expect(await inbox.find('roomchat', { account: 'bot', id: 'm2' })).toBeUndefined()
    expect(await inbox.find('roomchat', { account: 'other', id: 'm1' })).toBeUndefined()
    expect(await inbox.find('bizchat', { account: 'bot', id: 'm1' })).toBeUndefined()
  },

  'stores an empty body': async ({ store }) => {
    const number = await keepOne(store, 'm1', { raw: new Uint8Array() })
    expect((await store.inbox.get(number))?.raw).toEqual(new Uint8Array())
  },

  'a known message is not stored again in any state': async ({ store }) => {
    const { inbox } = store
    const done = await answerOne(store, 'done')
    const dead = await keepOne(store, 'dead')
    const running = await keepOne(store, 'running')
    const pending = await keepOne(store, 'pending')
    await inbox.markDead(dead, { error: 'e', atMs: 5 })
    await inbox.start(running, 't', STARTS_MAX)
    for (const id of ['done', 'dead', 'running', 'pending']) {
      expect(await inbox.keep(arrivalOf(inbound(id, { text: 'other', sender: 'other' }), { receivedAtMs: 9e12 }))).toEqual([null])
    }
    expect((await inbox.list({ limit: 10 })).map(({ number, sender }) => [number, sender])).toEqual(
      [pending, running, dead, done].map((number) => [number, '+15550100']),
    )
  },

  'tells which messages are known before they are stored': async ({ store, restart, otherProcess }) => {
    const asked = ['new', 'm1', 'buried', 'm2', 'm1', 'other'].map((id) => inbound(id))
    const answer = [false, true, true, true, true, false]
    expect(await store.inbox.known('roomchat', asked)).toEqual(asked.map(() => false))
    await store.inbox.keep(arrival(['m1', 'm2']))
    await store.inbox.markDead(await keepOne(store, 'buried'), { error: 'e', atMs: 5 })
    expect(await store.inbox.known('roomchat', asked)).toEqual(answer)
    expect(await (await otherProcess()).inbox.known('roomchat', asked)).toEqual(answer)
    const { inbox } = await restart()
    expect(await inbox.known('roomchat', asked)).toEqual(answer)
    expect(await inbox.known('bizchat', asked)).toEqual(asked.map(() => false))
    expect(await inbox.known('roomchat', [inbound('m1', { account: 'other' })])).toEqual([false])
    expect(await inbox.known('roomchat', [])).toEqual([])
  },

  'asking about a message does not make it known': async ({ store: { inbox } }) => {
    expect(await inbox.known('roomchat', [inbound('m1')])).toEqual([false])
    expect(await inbox.keep(arrival('m1'))).toEqual([expect.any(Number)])
    expect(await inbox.list({ limit: 10 })).toHaveLength(1)
  },

  'channel, account and id together identify a message': async ({ store: { inbox } }) => {
    const parts = ['', ' ', 'a', 'b', 'ab', 'a b', 'a\0', '\0a', 'a"', '","', ...ODD_TEXTS.slice(4, 9)]
    const all = parts.flatMap((channel) => [
      arrivalOf(inbound('b', { account: 'a' }), { channel }),
      arrivalOf(inbound(channel, { account: 'x' })),
      arrivalOf(inbound('x', { account: channel })),
    ])
    for (const one of all) expect(await inbox.keep(one)).toEqual([expect.any(Number)])
    for (const one of all) expect(await inbox.keep(one)).toEqual([null])
  },

  'of a hundred concurrent copies one is stored': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    const kept = await Promise.all(Array.from({ length: 100 }, (_, at) => (at % 10 ? store : other).inbox.keep(arrival('m1'))))
    expect(kept.flat().filter((number) => number !== null)).toHaveLength(1)
    expect(await store.inbox.list({ limit: 10 })).toHaveLength(1)
  },

  'known messages stay known after a restart': async ({ store, restart }) => {
    await keepOne(store, 'm1')
    expect(await (await restart()).inbox.keep(arrival('m1'))).toEqual([null])
  },

  'numbers increase in order of arrival': async ({ store: { inbox }, restart }) => {
    const kept = await Promise.all(Array.from({ length: 20 }, (_, at) => inbox.keep(arrival(`m${at}`))))
    const numbers = [...kept, await (await restart()).inbox.keep(arrival('last'))].flat().map(Number)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  },

  'each new message of a batch gets a number and the batch body': async ({ store: { inbox } }) => {
    await inbox.keep(arrival('known'))
    const kept = await inbox.keep(bodyArrival(['known', 'm1', 'm2', 'm3', 'm1', 'm4']))
    const [known, first, second, third, repeat, fourth] = kept
    expect([known, repeat]).toEqual([null, null])
    for (const [number, id] of [
      [first, 'm1'],
      [second, 'm2'],
      [third, 'm3'],
      [fourth, 'm4'],
    ]) {
      const entry = await inbox.get(Number(number))
      expect(entry).toMatchObject({ messageId: id, message: null, state: 'pending' })
      expect(entry?.raw).toEqual(bodyOf('known m1 m2 m3 m1 m4'))
    }
    const numbers = [first, second, third, fourth].map(Number)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  },

  'the messages of a batch may belong to different sessions': async ({ store }) => {
    const { inbox } = await own(store)
    const messages = ['a', 'b'].map((id) => ({ message: inbound(id), session: `session ${id}` }))
    await inbox.keep(arrival([], { messages }))
    expect((await inbox.waiting({ after: 0, limit: 10 })).map(({ lane }) => lane)).toEqual(['session a', 'session b'])
  },

  'a used nonce is refused and its request is not stored': async ({ store: { inbox }, restart, otherProcess }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    expect(await inbox.keep(arrival('m1', { nonce }))).toEqual([expect.any(Number)])
    expect(await inbox.keep(arrival('m1', { nonce }))).toBe('replayed')
    expect(await inbox.keep(arrival('m2', { nonce }))).toBe('replayed')
    expect(await (await otherProcess()).inbox.keep(arrival('m2', { nonce }))).toBe('replayed')
    const again = (await restart()).inbox
    expect(await again.keep(arrival('m2', { nonce, receivedAtMs: 1_999 }))).toBe('replayed')
    expect(await again.list({ limit: 10 })).toHaveLength(1)
    expect(await again.keep(arrival('m2'))).toEqual([expect.any(Number)])
  },

  'a nonce can be used again after it expires': async ({ store: { inbox } }) => {
    await inbox.keep(arrival('m1', { nonce: { value: 'nonce', untilMs: 2_000 } }))
    const later = { receivedAtMs: 2_000, nonce: { value: 'nonce', untilMs: 3_000 } }
    expect(await inbox.keep(arrival('m2', later))).toEqual([expect.any(Number)])
    expect(await inbox.keep(arrival('m3', { ...later, receivedAtMs: 2_999 }))).toBe('replayed')
  },

  'nonces of different channels are independent': async ({ store: { inbox } }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    await inbox.keep(arrival('m1', { nonce }))
    expect(await inbox.keep(arrival('m1', { nonce, channel: 'bizchat' }))).toEqual([expect.any(Number)])
    expect(await inbox.keep(arrival('m2', { nonce: { ...nonce, value: 'NONCE' } }))).toEqual([expect.any(Number)])
  },

  'of many concurrent requests with one nonce one is stored': async ({ store: { inbox } }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    const kept = await Promise.all(Array.from({ length: 50 }, (_, at) => inbox.keep(arrival(`m${at}`, { nonce }))))
    expect(kept.filter((one) => one !== 'replayed')).toHaveLength(1)
    expect(await inbox.list({ limit: 10 })).toHaveLength(1)
  },

  'a request without messages consumes its nonce and stores nothing': async ({ store: { inbox } }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    expect(await inbox.keep(arrival([], { nonce }))).toEqual([])
    expect(await inbox.keep(arrival([], { nonce }))).toBe('replayed')
    expect(await inbox.list({ limit: 10 })).toEqual([])
  },

  'a request that fails to store affects neither others nor its nonce': async ({ store: { inbox } }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    const poison = arrivalOf(inbound('poison', { sender: {} as unknown as string }), { nonce })
    const kept = await Promise.allSettled([inbox.keep(arrival('m1')), inbox.keep(poison), inbox.keep(arrival('m2'))])
    expect(kept.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await inbox.list({ limit: 10 })).map(({ messageId }) => messageId)).toEqual(['m2', 'm1'])
    expect(await inbox.keep(arrival('m3', { nonce }))).toEqual([expect.any(Number)])
  },
}
