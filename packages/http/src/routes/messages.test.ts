/** `GET /api/messages`: words are found where they were written, by a caller who may read them. */
import { assistant, turnEnd, user } from '@sluice/testkit/store-rules/samples'
import { describe, expect, test } from 'vitest'
import { testGateways } from '../testing.ts'
import type { MessagesPage } from './messages.ts'

const gateway = testGateways()

async function arrange() {
  const made = gateway()
  const operator = await made.pair('mine')
  const client = await made.pair('phone', null, 'client')
  const other = await made.pair('other', null, 'client')
  const ask = (path: string, token = operator.token) => made.request(path, { headers: { authorization: `Bearer ${token}` } })
  const search = async (query: string, token = operator.token) =>
    (await (await ask(`/api/messages?${query}`, token)).json()) as MessagesPage
  let turn = 0
  /** Ends a turn of a session, a second after the one before. */
  const say = (sessionId: string, question: string, answer = 'Yes.') =>
    made.store.turns.finish(turnEnd(`t${++turn}`, { sessionId, endedAtMs: turn * 1000, messages: [user(question), assistant(answer)] }))
  const audited = async () =>
    (await made.store.sops.audit({ after: 0, limit: 100 })).filter(({ kind }) => kind === 'conversation_read').map(({ detail }) => detail)
  return { ...made, operator, client, other, ask, search, say, audited }
}

/** Reads pages until the end. */
async function all(search: (query: string) => Promise<MessagesPage>, query: string) {
  const found: MessagesPage['found'][number][] = []
  let pages = 0
  for (let cursor = ''; ; pages++) {
    const page = await search(`${query}${cursor}`)
    found.push(...page.found)
    if (page.next === null) return { found, pages: pages + 1 }
    cursor = `&cursor=${page.next}`
  }
}

describe('a search for words', () => {
  test('finds questions and answers in any case, the newest first, each with its place', async () => {
    const { say, search, client } = await arrange()
    await say(`${client.device}/a`, 'When does the TRAIN leave?')
    await say(`${client.device}/b`, 'hello', 'The train leaves at noon.')
    await say(`${client.device}/b`, 'thanks')
    const { found, next } = await search('find=train', client.token)
    expect(next).toBeNull()
    expect(found).toEqual([
      {
        session_id: 'b',
        agent: 'main',
        name: null,
        channel: null,
        sender: null,
        at: '1970-01-01T00:00:02.000Z',
        role: 'assistant',
        text: 'The train leaves at noon.',
        up_to: 2,
      },
      expect.objectContaining({ session_id: 'a', role: 'user', text: 'When does the TRAIN leave?' }),
    ])
  })

  test('finds each turn once, page by page, also in a conversation of many turns', async () => {
    const { say, search, client } = await arrange()
    for (let at = 1; at <= 60; at++)
      await say(`${client.device}/${at % 2 === 0 ? 'even' : 'odd'}`, at % 3 === 0 ? `needle ${at}` : `hay ${at}`)
    const { found, pages } = await all((query) => search(query, client.token), 'find=needle&limit=7')
    expect(pages).toBe(3)
    expect(found.map(({ text }) => Number(text.split(' ')[1]))).toEqual([
      ...[60, 54, 48, 42, 36, 30, 24, 18, 12, 6],
      ...[57, 51, 45, 39, 33, 27, 21, 15, 9, 3],
    ])
  })

  test('looks at a bounded number of turns for each page, and goes on behind them', async () => {
    const { store, search, client } = await arrange()
    for (let at = 1; at <= 1100; at++)
      void store.turns.finish(
        turnEnd(`t${at}`, { sessionId: `${client.device}/long`, endedAtMs: at, messages: [user(at === 10 ? 'needle' : 'hay')] }),
      )
    const first = await search('find=needle', client.token)
    expect(first).toEqual({ found: [], next: expect.any(String) })
    expect(await search(`find=needle&cursor=${first.next}`, client.token)).toMatchObject({ found: [{ up_to: 10 }], next: null })
  })

  test('shows the words within an excerpt, without halves of characters', async () => {
    const { say, search, client } = await arrange()
    await say(`${client.device}/a`, `${'😀'.repeat(200)}needle${'😀'.repeat(200)}`)
    const text = (await search('find=needle', client.token)).found[0]?.text ?? ''
    expect(text).toMatch(/^…😀+needle😀+…$/u)
    expect(text.isWellFormed()).toBe(true)
    expect(text.length).toBeLessThanOrEqual(202)
  })

  test('leads to the place, whose messages are answered up to it', async () => {
    const { say, search, ask, client } = await arrange()
    for (const text of ['one', 'needle', 'three']) await say(`${client.device}/a`, text)
    const place = (await search('find=needle', client.token)).found[0]?.up_to
    const read = async (query: string) =>
      ((await (await ask(`/api/sessions/a/messages?${query}`, client.token)).json()) as { messages: { content: string }[] }).messages
    expect((await read(`limit=2&up_to=${place}`)).map(({ content }) => content)).toEqual(['needle', 'Yes.'])
    expect((await read('limit=2&up_to=999999')).map(({ content }) => content)).toEqual(['three', 'Yes.'])
    expect(await read('up_to=0')).toEqual([])
  })
})

describe('words of others', () => {
  test('are found by an operator only, on request, and each conversation shown is recorded', async () => {
    const { say, search, ask, client, other, operator, audited } = await arrange()
    await say(`${operator.device}/own`, 'needle of mine')
    await say(`${client.device}/a`, 'needle of a client')
    await say('channel:testchat/bot/room/ada', 'needle of ada')
    await say(`${other.device}/b`, 'hay')
    expect((await search('find=needle')).found.map(({ text }) => text)).toEqual(['needle of mine'])
    expect((await search('find=needle', other.token)).found).toEqual([])
    for (const query of ['all=true', 'channel=testchat', 'channel=testchat&sender=ada'])
      expect((await ask(`/api/messages?find=needle&${query}`, client.token)).status, query).toBe(403)
    expect(await audited()).toEqual([])
    expect((await search('find=needle&channel=testchat&sender=ada')).found).toMatchObject([{ text: 'needle of ada', sender: 'ada' }])
    expect((await search('find=needle&all=true')).found).toHaveLength(3)
    expect(await audited()).toEqual([{ session: 'channel:testchat/bot/room/ada' }, { session: `${client.device}/a` }])
  })

  test('are not reached by a cursor that names their conversation', async () => {
    const { say, search, ask, client, other } = await arrange()
    await say(`${client.device}/a`, 'needle')
    for (const id of [`${client.device}/a`, `agent:other/${client.device}/a`, `${other.device}x/a`]) {
      const cursor = Buffer.from(JSON.stringify([9_000_000, id, 3])).toString('base64url')
      expect((await ask(`/api/messages?find=needle&cursor=${cursor}`, other.token)).status, id).toBe(400)
    }
    const own = Buffer.from(JSON.stringify([9_000_000, `${other.device}/a`, 3])).toString('base64url')
    expect(await search(`find=needle&cursor=${own}`, other.token)).toEqual({ found: [], next: null })
  })

  test('are not found after their conversation was erased', async () => {
    const { say, search, client, store } = await arrange()
    await say(`${client.device}/a`, 'needle')
    await store.sessions.erase(`${client.device}/a`, { atMs: 1, by: 'test' })
    expect((await search('find=needle', client.token)).found).toEqual([])
  })
})
