/** Rules for outgoing messages. */
import type { OutboxStore } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { reply, replyParts } from './delivery-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const statesOf = (rows: readonly { readonly number: number; readonly state: string }[]): string[] =>
  rows.toSorted((a, b) => a.number - b.number).map(({ state }) => state)

export const outboxRules: StoreRules = {
  'a queued notification is unchanged in another process': async ({ store: { outbox }, otherProcess }) => {
    const given = reply('hello', { to: { to: 'room', more: { subject: 's' } }, turnId: null })
    const numbers = await outbox.add([given, reply('second')])
    expect(numbers).toEqual([numbers[0], (numbers[0] ?? 0) + 1])
    const row = {
      ...given,
      number: numbers[0],
      state: 'queued',
      attempts: 0,
      nextAtMs: null,
      endedAtMs: null,
      providerId: null,
      repeated: false,
      error: null,
      inbox: null,
    }
    expect(await outbox.get(numbers[0] ?? 0)).toEqual(row)
    expect(await (await otherProcess()).outbox.get(numbers[0] ?? 0)).toEqual(row)
    expect(await outbox.get(999)).toBeUndefined()
    expect(await outbox.add([])).toEqual([])
  },

  'each conversation and each thread has its own lane': async ({ store }) => {
    const { outbox } = await own(store)
    await outbox.add([
      reply('a', { to: { to: 'room' } }),
      reply('b', { to: { to: 'room', replyTo: 'm7', more: { subject: 's' } } }),
      reply('c', { to: { to: 'room', thread: 't' } }),
      reply('d', { to: { to: 'room', thread: 't', replyTo: 'm8' } }),
      reply('e', { to: { to: 'room t' } }),
      reply('f', { to: { to: 'room' }, account: 'other' }),
      reply('g', { to: { to: 'room' }, channel: 'bizchat' }),
    ])
    const lanes = (await outbox.waiting({ after: 0, limit: 10 })).map(({ lane }) => lane)
    expect(lanes.map((lane) => lanes.indexOf(lane))).toEqual([0, 0, 2, 2, 4, 5, 6])
  },

  'a start is durable before sending and begins one attempt': async ({ store: { outbox }, otherProcess }) => {
    const given = reply('hello')
    const [number = 0] = await outbox.add([given])
    expect(await outbox.start(number)).toEqual({ ...given, number, attempts: 1, sinceMs: given.createdAtMs })
    expect(await (await otherProcess()).outbox.get(number)).toMatchObject({ state: 'sending', attempts: 1 })
    expect(await outbox.start(number)).toBeUndefined()
    expect(await outbox.get(number)).toMatchObject({ attempts: 1 })
    expect(await outbox.start(999)).toBeUndefined()
  },

  'a sent message stores its platform id and is not sent again': async ({ store }) => {
    const { outbox } = await own(store)
    const [number = 0] = await outbox.add([reply('hello')])
    await outbox.start(number)
    await outbox.sent(number, { providerId: 'p1', atMs: 5_000 })
    expect(await outbox.get(number)).toMatchObject({ state: 'sent', providerId: 'p1', endedAtMs: 5_000, nextAtMs: null })
    expect(await outbox.start(number)).toBeUndefined()
    await outbox.retry(number, { error: 'e', atMs: 1 })
    await outbox.giveUp(number, { state: 'dead', error: 'e', atMs: 1 })
    expect(await outbox.get(number)).toMatchObject({ state: 'sent', error: null })
    expect(await outbox.waiting({ after: 0, limit: 10 })).toEqual([])
  },

  'an unsent message waits for its retry and keeps its client id': async ({ store }) => {
    const { outbox } = await own(store)
    const [number = 0] = await outbox.add([reply('hello')])
    await outbox.start(number)
    await outbox.retry(number, { error: 'too many', atMs: 7_000 })
    expect(await outbox.get(number)).toMatchObject({ state: 'failed', attempts: 1, nextAtMs: 7_000, error: 'too many', endedAtMs: null })
    expect(await outbox.waiting({ after: 0, limit: 10 })).toMatchObject([{ number, atMs: 7_000 }])
    expect(await outbox.start(number)).toMatchObject({ attempts: 2, clientId: 'client id of hello' })
    expect(await outbox.get(number)).toMatchObject({ state: 'sending', nextAtMs: null })
  },

  'an attempt without a connection waits for its retry and is not counted': async ({ store: { outbox }, clock }) => {
    const [number = 0] = await outbox.add([reply('hello')])
    expect(await outbox.start(number)).toMatchObject({ attempts: 1, sinceMs: 2_000 })
    await outbox.retry(number, { error: 'away', atMs: 7_000, uncounted: true })
    expect(await outbox.get(number)).toMatchObject({ state: 'failed', attempts: 0, nextAtMs: 7_000, error: 'away' })
    await outbox.start(number)
    await outbox.giveUp(number, { state: 'dead', error: 'too old', atMs: 8_000 })
    await outbox.replay(number)
    expect(await outbox.start(number)).toMatchObject({ attempts: 1, sinceMs: clock.nowMs() })
  },

  'a message that was sent shows no error of earlier attempts': async ({ store: { outbox } }) => {
    const [number = 0] = await outbox.add([reply('hello')])
    await outbox.start(number)
    await outbox.retry(number, { error: 'too many', atMs: 7_000 })
    await outbox.start(number)
    await outbox.sent(number, { providerId: 'p1', atMs: 8_000 })
    expect(await outbox.get(number)).toMatchObject({ state: 'sent', attempts: 2, error: null })
  },

  'an ambiguous part is not retried and does not affect later parts': async ({ store: { outbox } }) => {
    const [first = 0] = await outbox.add(replyParts(['one', 'two']))
    await outbox.start(first)
    await outbox.giveUp(first, { state: 'ambiguous', error: 'cut off', atMs: 8_000 })
    expect(await outbox.get(first)).toMatchObject({ state: 'ambiguous', error: 'cut off', endedAtMs: 8_000 })
    expect(await outbox.start(first)).toBeUndefined()
    expect(statesOf(await outbox.list({ limit: 10 }))).toEqual(['ambiguous', 'queued'])
  },

  'a dead part also ends the later parts of its reply, and no others': async ({ store }) => {
    const { outbox } = await own(store)
    const before = await outbox.add(replyParts(['a1', 'a2', 'a3']))
    const [one = 0, two = 0, three = 0, four = 0] = await outbox.add(replyParts(['b1', 'b2', 'b3', 'b4']))
    const after = await outbox.add([...replyParts(['c1', 'c2', 'c3']), reply('d', { to: { to: 'other' } })])
    await outbox.start(one)
    await outbox.sent(one, { providerId: 'p', atMs: 1 })
    await outbox.start(two)
    await outbox.giveUp(two, { state: 'dead', error: 'refused', atMs: 8_000 })
    expect(await outbox.get(one)).toMatchObject({ state: 'sent' })
    expect(await outbox.get(two)).toMatchObject({ state: 'dead', error: 'refused', endedAtMs: 8_000 })
    for (const number of [three, four]) {
      expect(await outbox.get(number)).toMatchObject({ state: 'dead', endedAtMs: 8_000, error: expect.stringMatching(/earlier part/) })
      expect(await outbox.start(number)).toBeUndefined()
    }
    expect((await outbox.waiting({ after: 0, limit: 20 })).map(({ number }) => number)).toEqual([...before, ...after])
  },

  'an ended message never changes': async ({ store: { outbox } }) => {
    const [dead = 0, ambiguous = 0] = await outbox.add([reply('a'), reply('b')])
    for (const number of [dead, ambiguous]) await outbox.start(number)
    await outbox.giveUp(dead, { state: 'dead', error: 'e', atMs: 1 })
    await outbox.giveUp(ambiguous, { state: 'ambiguous', error: 'e', atMs: 1 })
    const before = await outbox.list({ limit: 10 })
    for (const number of [dead, ambiguous, 999]) {
      await outbox.sent(number, { providerId: 'p', atMs: 2 })
      await outbox.retry(number, { error: 'late', atMs: 2 })
      await outbox.giveUp(number, { state: 'dead', error: 'late', atMs: 2 })
    }
    expect(await outbox.list({ limit: 10 })).toEqual(before)
  },

  'a replay revives a dead part and the parts that died with it': async ({ store: { outbox } }) => {
    const [one = 0, two = 0, three = 0] = await outbox.add(replyParts(['one', 'two', 'three']))
    await outbox.start(one)
    await outbox.giveUp(one, { state: 'dead', error: 'refused', atMs: 8_000 })
    await outbox.replay(three)
    await outbox.start(three)
    await outbox.giveUp(three, { state: 'dead', error: 'by itself', atMs: 9_000 })
    expect(await outbox.replay(one)).toBe(true)
    for (const [number, text] of [
      [one, 'one'],
      [two, 'two'],
    ] as const) {
      expect(await outbox.get(number)).toMatchObject({ state: 'queued', attempts: 0, error: null, endedAtMs: null, nextAtMs: null })
      expect(await outbox.start(number)).toMatchObject({ text, attempts: 1, clientId: `client id of ${text}` })
    }
    expect(await outbox.get(three)).toMatchObject({ state: 'dead', error: 'by itself' })
  },

  'only ambiguous and dead messages can be replayed': async ({ store }) => {
    const { outbox } = await own(store)
    const [ambiguous = 0, queued = 0, sending = 0, failed = 0, sent = 0] = await outbox.add(
      ['a', 'b', 'c', 'd', 'e'].map((text) => reply(text)),
    )
    for (const number of [ambiguous, sending, failed, sent]) await outbox.start(number)
    await outbox.giveUp(ambiguous, { state: 'ambiguous', error: 'e', atMs: 1 })
    await outbox.retry(failed, { error: 'e', atMs: 1 })
    await outbox.sent(sent, { providerId: 'p', atMs: 1 })
    for (const number of [queued, sending, failed, sent, 999]) expect(await outbox.replay(number)).toBe(false)
    expect(statesOf(await outbox.list({ limit: 10 }))).toEqual(['ambiguous', 'queued', 'sending', 'failed', 'sent'])
    expect(await outbox.replay(ambiguous)).toBe(true)
    expect(await outbox.replay(ambiguous)).toBe(false)
    expect(await outbox.waiting({ after: 0, limit: 1 })).toMatchObject([{ number: ambiguous, atMs: 0 }])
  },

  'a discarded reply leaves the dead letters with its later parts, and is recorded': async ({ store, restart }) => {
    const { outbox } = store
    const [one = 0, two = 0, other = 0] = await outbox.add([...replyParts(['one', 'two']), reply('other')])
    await outbox.start(one)
    expect(await outbox.discard(one, { atMs: 7_000, by: 'device:d' })).toBe(false)
    await outbox.giveUp(one, { state: 'dead', error: 'refused', atMs: 8_000 })
    await outbox.start(other)
    await outbox.giveUp(other, { state: 'ambiguous', error: 'cut off', atMs: 8_000 })
    for (const number of [one, other]) {
      expect(await outbox.discard(number, { atMs: 9_000, by: 'device:d' })).toBe(true)
      expect(await outbox.discard(number, { atMs: 9_000, by: 'device:d' })).toBe(false)
    }
    expect(await outbox.discard(999, { atMs: 9_000, by: 'device:d' })).toBe(false)
    const again = await restart()
    expect(await again.outbox.counts()).toMatchObject({ dead: 0, ambiguous: 0 })
    expect((await again.outbox.list({ limit: 9, state: 'discarded' })).map(({ number }) => number)).toEqual([other, two, one])
    expect(await again.outbox.get(one)).toMatchObject({ state: 'discarded', error: 'refused', text: 'one' })
    const record = { kind: 'delivery_discarded', atMs: 9_000, by: 'device:d' }
    expect(await again.sops.audit({ limit: 9 })).toMatchObject([
      { ...record, detail: { box: 'outbox', number: one, channel: 'roomchat' } },
      { ...record, detail: { box: 'outbox', number: other, channel: 'roomchat' } },
    ])
    expect((await again.sops.verify()).broken).toBeNull()
    expect(await again.outbox.replay(one)).toBe(true)
    expect(await again.outbox.get(two)).toMatchObject({ state: 'queued' })
  },

  'after a crash an interrupted send is retried if deduplicated, else ambiguous': async ({ store, restart }) => {
    const numbers = await store.outbox.add([
      reply('a', { channel: 'repeatable' }),
      reply('b', { channel: 'fragile' }),
      reply('c', { channel: 'also repeatable' }),
      reply('d', { channel: 'fragile' }),
      reply('e', { channel: 'repeatable' }),
    ])
    const [one = 0, two = 0, three = 0, ...queued] = numbers
    for (const number of [one, two, three]) await store.outbox.start(number)
    const { outbox } = await own(await restart())
    expect(await outbox.recover({ repeatable: ['repeatable', 'also repeatable'], atMs: 6_000 })).toEqual([two])
    for (const number of [one, three]) {
      expect(await outbox.get(number)).toMatchObject({ state: 'failed', nextAtMs: 6_000, attempts: 1, error: expect.any(String) })
    }
    expect(await outbox.get(two)).toMatchObject({ state: 'ambiguous', endedAtMs: 6_000, attempts: 1, error: expect.any(String) })
    for (const number of queued) expect(await outbox.get(number)).toMatchObject({ state: 'queued', nextAtMs: null })
    expect(await outbox.recover({ repeatable: [], atMs: 6_001 })).toEqual([])
  },

  'after a crash an interrupted edit is retried': async ({ store, restart }) => {
    const [edit = 0, plain = 0] = await store.outbox.add([
      reply('a', { extras: { edits: 'p1', elseSend: true } }),
      reply('b', { extras: { topic: 't' } }),
    ])
    for (const number of [edit, plain]) await store.outbox.start(number)
    const { outbox } = await own(await restart())
    expect(await outbox.recover({ repeatable: [], atMs: 6_000 })).toEqual([plain])
    expect(await outbox.get(edit)).toMatchObject({ state: 'failed', nextAtMs: 6_000 })
  },

  'a sent reply that its platform reports as undelivered is dead, once, and can be sent again': async ({
    store: { outbox },
    otherProcess,
  }) => {
    const numbers = await outbox.add([reply('a'), reply('b'), reply('c', { channel: 'bizchat' })])
    const [number = 0, other = 0] = numbers
    for (const one of numbers) {
      await outbox.start(one)
      await outbox.sent(one, { providerId: one === other ? 'p2' : 'p1', atMs: 5 })
    }
    const numbersAs = async (id: string, limit = 9) => (await outbox.sentAs('roomchat', id, limit)).map((row) => row.number)
    expect([await numbersAs('p1'), await numbersAs('p2'), await numbersAs('p2', 0), await numbersAs('p3')]).toEqual([
      [number],
      [other],
      [],
      [],
    ])
    const failed = { error: 'code 131026: undeliverable', atMs: 9 }
    expect(await outbox.undelivered('roomchat', 'unknown', failed)).toBeUndefined()
    expect(await outbox.undelivered('roomchat', 'p1', failed)).toBe(number)
    expect(await outbox.undelivered('roomchat', 'p1', failed)).toBeUndefined()
    expect(await numbersAs('p1')).toEqual([])
    const again = (await otherProcess()).outbox
    const dead = { number, state: 'dead', error: failed.error, endedAtMs: 9, providerId: 'p1' }
    expect(await again.list({ limit: 9, state: 'dead' })).toMatchObject([dead])
    expect(await again.counts()).toMatchObject({ dead: 1 })
    expect((await again.list({ limit: 9, state: 'sent' })).length).toBe(2)
    expect(await again.replay(number)).toBe(true)
    expect(await again.start(number)).toMatchObject({ text: 'a', attempts: 1 })
  },

  'a reply that may have arrived and is sent again stays marked': async ({ store: { outbox }, otherProcess }) => {
    const [number = 0, other = 0] = await outbox.add([reply('a'), reply('b')])
    for (const one of [number, other]) await outbox.start(one)
    await outbox.retry(number, { error: 'answered 503', atMs: 1, uncounted: true, repeats: true })
    await outbox.retry(other, { error: 'not connected', atMs: 1, uncounted: true })
    await outbox.start(number)
    await outbox.retry(number, { error: 'not connected', atMs: 2, uncounted: true })
    const again = (await otherProcess()).outbox
    expect([await again.get(number), await again.get(other)]).toMatchObject([{ repeated: true, attempts: 0 }, { repeated: false }])
  },

  'a prompt of a pending approval is marked at its start, and is sent again after a crash': async ({ store, restart }) => {
    const prompts = replyParts(['may it', 'run?'])
    await store.approvals.open(asked('open'), prompts)
    await store.approvals.open(asked('decided'), [reply('and this?')])
    const { runId, stepId } = asked('decided')
    await store.approvals.decide({ runId, stepId }, decision('approved'))
    const [plain = 0] = await store.outbox.add([reply('a')])
    const numbers = (await store.outbox.list({ limit: 10 })).map(({ number }) => number).toSorted((a, b) => a - b)
    const [first = 0, second = 0, other = 0] = numbers
    const asks = async (outbox: Pick<OutboxStore, 'start'>, all: readonly number[]) =>
      (await Promise.all(all.map((number) => outbox.start(number)))).map((started) => started?.asks)
    expect(await asks(store.outbox, numbers)).toEqual([true, true, undefined, undefined])
    const { outbox } = await own(await restart())
    expect(await outbox.recover({ repeatable: [], atMs: 6_000 })).toEqual([other, plain])
    for (const number of [first, second]) expect(await outbox.get(number)).toMatchObject({ state: 'failed', nextAtMs: 6_000, attempts: 1 })
    expect(await asks(outbox, [first, second])).toEqual([true, true])
  },

  'a message sent instead of an edit keeps its extras': async ({ store, restart }) => {
    const files = [{ kind: 'image', path: 'a.png' }] as const
    const [number = 0] = await store.outbox.add([reply('a', { extras: { edits: 'p1', elseSend: true, files } })])
    await store.outbox.start(number)
    await store.outbox.sendInstead(number)
    const { outbox } = await own(await restart())
    expect(await outbox.recover({ repeatable: [], atMs: 6_000 })).toEqual([number])
    await outbox.replay(number)
    expect((await outbox.start(number))?.extras).toEqual({ files })
  },

  'lists waiting messages oldest first, in pages, without running ones': async ({ store }) => {
    const { outbox } = await own(store)
    expect(await outbox.oldestWaitingMs()).toBeNull()
    const numbers = await outbox.add(['a', 'b', 'c', 'd', 'e'].map((text) => reply(text)))
    const [failed = 0, sending = 0, ...queued] = numbers
    await outbox.start(sending)
    await outbox.start(failed)
    await outbox.retry(failed, { error: 'e', atMs: 4_000 })
    const waiting = await outbox.waiting({ after: 0, limit: 10 })
    expect(waiting.map(({ number, channel, account, atMs }) => [number, channel, account, atMs])).toEqual([
      [failed, 'roomchat', 'bot', 4_000],
      ...queued.map((number) => [number, 'roomchat', 'bot', 0]),
    ])
    expect(await outbox.oldestWaitingMs()).toBe(2_000)
    expect(await outbox.waiting({ after: 0, limit: 2 })).toEqual(waiting.slice(0, 2))
    expect(await outbox.waiting({ after: queued[0] ?? 0, limit: 10 })).toEqual(waiting.slice(2))
  },

  'lists entries newest first, in pages, by state or channel': async ({ store: { outbox } }) => {
    const [a = 0, b = 0, c = 0] = await outbox.add([reply('a'), reply('b', { channel: 'bizchat' }), reply('c')])
    await outbox.start(a)
    await outbox.sent(a, { providerId: 'p', atMs: 1 })
    const list = async (filter: object) => (await outbox.list({ limit: 10, ...filter })).map(({ number }) => number)
    expect(await list({})).toEqual([c, b, a])
    expect(await list({ limit: 2 })).toEqual([c, b])
    expect(await list({ before: b })).toEqual([a])
    expect(await list({ state: 'sent' })).toEqual([a])
    expect(await list({ state: 'queued' })).toEqual([c, b])
    expect(await list({ channel: 'bizchat' })).toEqual([b])
    expect(await list({ channel: 'roomchat', state: 'queued' })).toEqual([c])
    expect(await list({ channel: 'bizchat', state: 'sent' })).toEqual([])
  },

  'counts unsent messages by state': async ({ store: { outbox } }) => {
    expect(await outbox.counts()).toEqual({ queued: 0, sending: 0, failed: 0, ambiguous: 0, dead: 0 })
    const [sent = 0, sending = 0, failed = 0, ambiguous = 0, dead = 0] = await outbox.add('abcdefg'.split('').map((text) => reply(text)))
    for (const number of [sent, sending, failed, ambiguous, dead]) await outbox.start(number)
    await outbox.sent(sent, { providerId: 'p', atMs: 1 })
    await outbox.retry(failed, { error: 'e', atMs: 1 })
    await outbox.giveUp(ambiguous, { state: 'ambiguous', error: 'e', atMs: 1 })
    await outbox.giveUp(dead, { state: 'dead', error: 'e', atMs: 1 })
    expect(await outbox.counts()).toEqual({ queued: 2, sending: 1, failed: 1, ambiguous: 1, dead: 1 })
  },
}
