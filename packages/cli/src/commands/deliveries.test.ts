/** `sluice inbox` and `sluice outbox`, on a store that no other process has open. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import type { InboxStore, NewReply, Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { afterEach, describe, expect, test } from 'vitest'

const AT_MS = Date.parse('2026-01-01T00:00:00.000Z')
const TURN_END = { status: 'done', model: 'echo', error: null, inputTokens: 1, outputTokens: 1, costUsd: 0, attempts: 1 } as const

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

/** Fills a store, and returns functions that run commands on it. */
async function arrange(fill: (store: Store) => Promise<void> = async () => {}) {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const on = async <Result>(work: (store: Store) => Promise<Result>): Promise<Result> => {
    mkdirSync(dir, { recursive: true })
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }
  await on(fill)
  const run = sluiceWith([])
  const sluice = (...argv: string[]) => run(...argv, '--data-dir', dir)
  const json = async (...argv: string[]): Promise<unknown> => JSON.parse((await sluice(...argv, '--json')).out)
  return { sluice, json, on }
}

const message = async (
  { inbox }: Store,
  id: string,
  { channel = 'testchat', raw = null as Uint8Array | null, text = 'hi', sender = 'alice' } = {},
) => {
  const inbound = { id, account: 'bot', sender, to: { to: 'room' }, text }
  await inbox.keep({
    channel,
    verdict: 'x-signature',
    raw,
    receivedAtMs: AT_MS,
    messages: [{ session: `channel:${channel}/room`, message: inbound }],
  })
}

const failMessage = async (inbox: InboxStore, number: number, error = 'no model answers') => {
  await inbox.start(number, `turn-${number}`, 5)
  await inbox.markDead(number, { error, atMs: AT_MS })
}

const reply = (changes: Partial<NewReply> = {}): NewReply => ({
  channel: 'testchat',
  account: 'bot',
  to: { to: 'room' },
  text: 'hello back',
  part: 1,
  parts: 1,
  clientId: 'client-1',
  turnId: null,
  createdAtMs: AT_MS,
  ...changes,
})

const failReply = async ({ outbox }: Store, number: number, state: 'dead' | 'ambiguous') => {
  await outbox.start(number)
  await outbox.giveUp(number, { state, error: 'the platform refused', atMs: AT_MS })
}

describe('list and dead', () => {
  const three = async (store: Store) => {
    for (const id of ['a', 'b', 'c']) await message(store, id, { channel: id === 'c' ? 'otherchat' : 'testchat' })
    await failMessage(store.inbox, 2)
  }

  test('print the newest first, as a table or as JSON', async () => {
    const { sluice, json } = await arrange(three)
    const { code, out } = await sluice('inbox', 'list')
    expect(code).toBe(0)
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['number', 'received', 'channel', 'sender', 'state', 'attempts', 'error'],
      ['3', '2026-01-01T00:00:00.000Z', 'otherchat', 'alice', 'pending', '0'],
      ['2', '2026-01-01T00:00:00.000Z', 'testchat', 'alice', 'dead', '1', 'no model answers'],
      ['1', '2026-01-01T00:00:00.000Z', 'testchat', 'alice', 'pending', '0'],
      [''],
    ])
    expect(await json('inbox', 'list')).toMatchObject([
      { number: 3 },
      { number: 2, message_id: 'b', error: 'no model answers' },
      { number: 1 },
    ])
  })

  test('filter by state and channel, page by page', async () => {
    const { sluice, json } = await arrange(three)
    expect(await json('inbox', 'list', '--state', 'pending')).toMatchObject([{ number: 3 }, { number: 1 }])
    expect(await json('inbox', 'list', '--channel', 'otherchat')).toMatchObject([{ number: 3 }])
    expect(await json('inbox', 'list', '--limit', '1', '--before', '3')).toMatchObject([{ number: 2 }])
    expect((await sluice('inbox', 'list', '--limit', '1')).err).toBe('older ones: add --before 3\n')
    expect(await json('inbox', 'dead')).toMatchObject([{ number: 2 }])
  })

  test('outbox dead includes ambiguous replies', async () => {
    const { sluice, json } = await arrange(async (store) => {
      await store.outbox.add([reply(), reply(), reply()])
      await failReply(store, 1, 'ambiguous')
      await failReply(store, 3, 'dead')
    })
    expect(await json('outbox', 'dead')).toMatchObject([
      { number: 3, state: 'dead', to: { to: 'room' } },
      { number: 1, state: 'ambiguous' },
    ])
    expect(await json('outbox', 'dead', '--limit', '1')).toMatchObject([{ number: 3 }])
    expect((await sluice('outbox', 'list')).out).toContain('the platform refused')
    expect(await json('outbox', 'list', '--state', 'queued')).toMatchObject([{ number: 2 }])
  })

  test('say that the list is empty', async () => {
    const { sluice, json } = await arrange()
    expect((await sluice('inbox', 'list')).out).toBe('nothing in the inbox\n')
    expect((await sluice('outbox', 'dead')).out).toBe('nothing dead or ambiguous in the outbox\n')
    expect(await json('outbox', 'dead')).toEqual([])
  })

  test('keep text from outside in its line and escape control characters', async () => {
    const { sluice } = await arrange(async (store) => {
      await message(store, 'a')
      await failMessage(store.inbox, 1, `\u001b[2Jwiped\n${'x'.repeat(200)}`)
    })
    const { out } = await sluice('inbox', 'list')
    expect(out.trimEnd().split('\n')).toHaveLength(2)
    expect(out).toContain('\\u001b[2Jwiped xxx')
    expect(out).toContain('…')
  })
})

describe('show', () => {
  const answered = async (store: Store) => {
    await message(store, 'a', { text: 'grüße' })
    await store.inbox.start(1, 'turn-1', 5)
    const end = {
      id: 'turn-1',
      agent: 'main',
      sessionId: 'channel:testchat/room',
      source: 'testchat',
      input: 'grüße',
      response: 'hello back',
    }
    const delivery = { inbox: 1, replies: [reply({ turnId: 'turn-1' })] }
    await store.turns.finish({ ...TURN_END, ...end, createdAtMs: AT_MS, endedAtMs: AT_MS, messages: [], delivery })
  }

  test('prints every field of a message, and its request as indented JSON', async () => {
    const { sluice, json } = await arrange(answered)
    const { code, out } = await sluice('inbox', 'show', '1')
    expect(code).toBe(0)
    for (const line of [
      /^state +done$/m,
      /^channel +testchat, account bot$/m,
      /^verified by +x-signature$/m,
      /^turn +turn-1, done, echo$/m,
      /^text\ngrüße$/m,
      /^response\nhello back$/m,
      /^1 +1\/1 +queued +0 +hello back$/m,
      /^request\n\{\n {2}"id": "a",\n[^}]*\},\n {2}"text": "grüße"\n\}$/m,
    ])
      expect(out).toMatch(line)
    expect(await json('inbox', 'show', '1')).toMatchObject({
      number: 1,
      turn: { response: 'hello back' },
      replies: [{ number: 1 }],
      raw: expect.any(String),
    })
  })

  test('prints every field of a reply', async () => {
    const { sluice, json } = await arrange(answered)
    const { out } = await sluice('outbox', 'show', '1')
    for (const line of [
      /^state +queued$/m,
      /^to +room$/m,
      /^part +1 of 1$/m,
      /^client id +client-1$/m,
      /sluice inbox show 1/,
      /^text\nhello back$/m,
    ])
      expect(out).toMatch(line)
    expect(await json('outbox', 'show', '1')).toMatchObject({ number: 1, inbox: 1, turn: { turn_id: 'turn-1', status: 'done' } })
  })

  test('--raw writes the bytes of the request and nothing else', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0x0a, 0x1b])
    const { sluice } = await arrange((store) => message(store, 'a', { raw: bytes }))
    expect(await sluice('inbox', 'show', '1', '--raw')).toEqual({ code: 0, out: bytes.toString('latin1'), err: '' })
    expect((await sluice('inbox', 'show', '1')).out).toContain("4 bytes that are not text; 'sluice inbox show 1 --raw' writes them")
  })

  test.each([
    ['inbox', '7', 1, 'There is no message 7 in the inbox'],
    ['outbox', '7', 1, 'There is no reply 7 in the outbox'],
    ['inbox', 'first', 2, "wants a whole number from 1 on, not 'first'"],
  ])('%s show %s fails with exit code %i', async (box, number, code, piece) => {
    const { sluice } = await arrange()
    expect(await sluice(box, 'show', number)).toMatchObject({ code, out: '', err: expect.stringContaining(piece) })
  })
})

describe('replay', () => {
  test('replays each possible number, and explains the others', async () => {
    const { sluice, on } = await arrange(async (store) => {
      for (const id of ['a', 'b', 'c']) await message(store, id)
      await failMessage(store.inbox, 1)
      await failMessage(store.inbox, 3)
    })
    expect(await sluice('inbox', 'replay', '1', '2', '99', '3')).toEqual({
      code: 1,
      out: '2 messages run again\n',
      err: 'sluice: There is no message 99 in the inbox\nsluice: Message 2 waits for its turn as it is\n',
    })
    expect(await on(async ({ inbox }) => (await inbox.list({ limit: 9 })).map(({ state }) => state))).toEqual([
      'pending',
      'pending',
      'pending',
    ])
    const refused = await sluice('inbox', 'replay', '2', '--json')
    expect(JSON.parse(refused.err)).toMatchObject({ code: 'conflict' })
  })

  test('--dead replays every dead message of a channel, oldest first', async () => {
    const { sluice, json, on } = await arrange(async (store) => {
      for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) {
        await message(store, id, { channel: id === 'b' ? 'otherchat' : 'testchat' })
        if (id !== 'd') await failMessage(store.inbox, index + 1)
      }
    })
    expect(await json('inbox', 'replay', '--dead', '--channel', 'testchat')).toEqual({ replayed: [1, 3], too_old: [], more: false })
    expect(await on(({ inbox }) => inbox.counts())).toEqual({ pending: 3, running: 0, dead: 1 })
    expect((await sluice('inbox', 'replay', '--dead')).out).toBe('1 message runs again\n')
    expect((await sluice('inbox', 'replay', '--dead')).out).toBe('0 messages run again\n')
  })

  test('--dead replays every part of a reply, and no ambiguous reply', async () => {
    const { json, on } = await arrange(async (store) => {
      await store.outbox.add([reply({ part: 1, parts: 2 }), reply({ part: 2, parts: 2 }), reply()])
      await failReply(store, 1, 'dead')
      await failReply(store, 3, 'ambiguous')
    })
    expect(await json('outbox', 'replay', '--dead')).toEqual({ replayed: [1, 2], too_old: [], more: false })
    expect(await on(({ outbox }) => outbox.counts())).toMatchObject({ queued: 2, ambiguous: 1, dead: 0 })
    expect(await json('outbox', 'replay', '3')).toEqual({ replayed: [3] })
    expect(await on(({ outbox }) => outbox.counts())).toMatchObject({ queued: 3, ambiguous: 0 })
  })

  test('--state selects ambiguous replies, --since leaves out older ones', async () => {
    const hourMs = 3_600_000
    const { json, on } = await arrange(async (store) => {
      for (const agoMs of [50 * hourMs, 5 * hourMs, hourMs, hourMs]) await store.outbox.add([reply({ createdAtMs: Date.now() - agoMs })])
      for (const number of [1, 2, 3]) await failReply(store, number, 'ambiguous')
      await failReply(store, 4, 'dead')
    })
    expect(await json('outbox', 'replay', '--state', 'ambiguous', '--since', '90m')).toEqual({ replayed: [3], too_old: [], more: false })
    expect(await json('outbox', 'replay', '--state', 'dead,ambiguous', '--since', '2d')).toEqual({
      replayed: [2, 4],
      too_old: [],
      more: false,
    })
    const date = new Date(Date.now() - 60 * hourMs).toISOString()
    expect(await json('outbox', 'replay', '--state', 'ambiguous', '--since', date)).toMatchObject({ replayed: [1] })
    expect(await on(({ outbox }) => outbox.counts())).toMatchObject({ queued: 4, ambiguous: 0, dead: 0 })
  })
})

test('discard takes dead entries out of the dead letters, and explains the others', async () => {
  const { sluice, json, on } = await arrange(async (store) => {
    for (const id of ['a', 'b']) await message(store, id)
    await failMessage(store.inbox, 1)
  })
  expect(await sluice('inbox', 'discard', '1', '2', '99')).toEqual({
    code: 1,
    out: '1 discarded\n',
    err: 'sluice: There is no message 99 in the inbox\nsluice: Message 2 is pending: only a dead or limited message can be discarded\n',
  })
  expect(await json('inbox', 'list', '--state', 'discarded')).toMatchObject([{ number: 1 }])
  expect(await on(({ inbox }) => inbox.counts())).toMatchObject({ dead: 0 })
  expect(await sluice('outbox', 'discard', '5')).toMatchObject({ code: 1, err: 'sluice: There is no reply 5 in the outbox\n' })
})

test.each([
  [['inbox', 'list', '--state', 'sent'], '--state wants one of pending, running, done, dead, limited, discarded for the inbox'],
  [['outbox', 'list', '--limit', '100001'], '--limit wants a whole number from 1 to 100000'],
  [['inbox', 'list', '--before', '-1'], "Option '--before' argument is ambiguous; see"],
  [['inbox', 'replay'], 'name what to replay by number'],
  [['inbox', 'replay', '1', '--dead'], 'not both'],
  [['inbox', 'replay', '--channel', 'x'], '--channel and --since go with --state (dead or limited)'],
  [['inbox', 'replay', '--state', 'ambiguous'], "not 'ambiguous'"],
  [['outbox', 'replay', '--state', 'dead,sent'], "not 'sent'"],
  [['outbox', 'replay', '--dead', '--since', 'soon'], "not 'soon'"],
  [['inbox', 'replay', 'x'], "'x'"],
  [['outbox', 'discard'], '<number...> is missing'],
  [['outbox', 'show'], '<number> is missing'],
  [['inbox', 'dead', '--state', 'dead'], "'--state'"],
])('%j fails with exit code 2 and one line', async (argv, piece) => {
  const { sluice } = await arrange()
  const { code, err } = await sluice(...argv)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(piece) })
  expect(err.trim().split('\n')).toHaveLength(1)
})

test('messages are found by --sender and --text, and replies by --to and --text, in any case', async () => {
  const { json, sluice } = await arrange(async (store) => {
    await message(store, 'm1', { sender: 'Grace', text: 'the blue kettle' })
    await message(store, 'm2', { sender: 'Grace', text: 'the RED kettle' })
    await message(store, 'm3', { sender: 'linus', text: 'the red kettle' })
    await failMessage(store.inbox, 3)
    await store.outbox.add([
      reply({ to: { to: 'grace' }, text: 'blue it is', clientId: 'c1' }),
      reply({ to: { to: 'grace' }, text: 'red it is', clientId: 'c2' }),
      reply({ to: { to: 'linus' }, text: 'red it is', clientId: 'c3' }),
    ])
  })
  const found = async (...argv: string[]) => ((await json(...argv)) as { number: number }[]).map(({ number }) => number)
  expect(await found('inbox', 'list', '--sender', 'grace')).toEqual([2, 1])
  expect(await found('inbox', 'list', '--text', 'red kettle')).toEqual([3, 2])
  expect(await found('inbox', 'list', '--sender', 'GRACE', '--text', 'red')).toEqual([2])
  expect(await found('inbox', 'list', '--text', 'no model')).toEqual([3])
  expect((await sluice('inbox', 'list', '--text', 'green')).out).toContain('nothing found in the inbox')
  expect(await found('outbox', 'list', '--to', 'Grace')).toEqual([2, 1])
  expect(await found('outbox', 'list', '--to', 'linus', '--text', 'RED')).toEqual([3])
  expect(await found('outbox', 'list', '--text', 'green')).toEqual([])
  expect((await sluice('inbox', 'list', '--sender', 'grace', '--text', 'blue')).out).toContain('Grace')
  // A filter of the other list is refused, and not left out.
  expect((await sluice('inbox', 'list', '--to', 'grace')).code).not.toBe(0)
  expect((await sluice('outbox', 'list', '--sender', 'grace')).code).not.toBe(0)
})
