/** Turns that clients wait for, on two nodes that share a database. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TurnRow } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { inDatabase, sessionOf, setUpRuntimes, start, type TestRuntime } from './test-runtimes.ts'

setUpRuntimes()

const request = (session: string | null, text: string) => ({ source: 'ws', session, text, client: 'c1' as never, owner: 'local' })

/** Counts the answers that are under way at the same time. */
function overlaps(ms: number) {
  const state = { now: 0, max: 0 }
  const answer = async (text: string): Promise<string> => {
    state.max = Math.max(state.max, ++state.now)
    await sleep(ms)
    state.now--
    return `answer to ${text}`
  }
  return { state, answer }
}

const turnsOf = async (node: TestRuntime, session: string): Promise<readonly TurnRow[]> => {
  const ids = await node.runtime.store.turns.list({ limit: 1000, sessionId: session })
  return (await Promise.all(ids.map(({ id }) => node.runtime.store.turns.get(id)))).flatMap((row) => row ?? [])
}

describe('one turn of a session at a time', () => {
  test('turns of one session on two nodes run one after the other, and each sees those before it', async () => {
    const { state, answer } = overlaps(5)
    const [first, second] = [await start({ answer }), await start({ answer })]
    const session = sessionOf(second, 'room')
    const numbers = Array.from({ length: 12 }, (_, at) => at)
    const texts = await Promise.all(
      numbers.map((at) => (at % 2 ? first : second).runtime.agent.run(request(session, `m${at}`)).then(({ text }) => text)),
    )
    expect(texts).toEqual(numbers.map((at) => `answer to m${at}`))
    expect(state.max).toBe(1)
    for (const { runtime } of [first, second]) {
      const history = await runtime.store.sessions.history(session, 100)
      expect(history).toHaveLength(24)
      expect(JSON.stringify(history)).toBe(JSON.stringify(await first.runtime.store.sessions.history(session, 100)))
    }
  })

  test('a node that waits gets the session within a moment of its release', async () => {
    const gate = Promise.withResolvers<string>()
    const [first, second] = [await start({ answer: () => gate.promise }), await start()]
    const session = sessionOf(first, 'room')
    const one = first.runtime.agent.run(request(session, 'one'))
    await expect.poll(() => first.asked).toHaveLength(1)
    const two = second.runtime.agent.run(request(session, 'two'))
    // It waits long enough for the holder to know.
    await sleep(300)
    expect(second.asked).toEqual([])
    const startedMs = performance.now()
    gate.resolve('done')
    await one
    await two
    expect(performance.now() - startedMs).toBeLessThan(1000)
  })

  test('a turn that waits for its session holds no permit, and leaves the queue when it is aborted', async () => {
    const gate = Promise.withResolvers<string>()
    const toml = '[agent]\nmax_concurrent_turns = 1'
    const [first, second] = [await start({ answer: () => gate.promise }), await start({ toml })]
    const session = sessionOf(first, 'room')
    const one = first.runtime.agent.run(request(session, 'one'))
    await expect.poll(() => first.asked).toHaveLength(1)
    const leaving = new AbortController()
    const two = second.runtime.agent.run({ ...request(session, 'two'), signal: leaving.signal })
    two.catch(() => undefined)
    await sleep(50)
    expect(await second.runtime.agent.run(request(sessionOf(first, 'other'), 'three'))).toMatchObject({ text: 'answer to three' })
    leaving.abort()
    await expect(two).rejects.toMatchObject({ code: 'aborted' })
    gate.resolve('done')
    expect(await one).toMatchObject({ text: 'done' })
    await expect.poll(async () => (await turnsOf(first, session)).map(({ status }) => status).toSorted()).toEqual(['aborted', 'done'])
  })
})

describe('an outage of the database', () => {
  test('lets no later turn of a session overtake the one that it interrupted on the same node', async () => {
    const gate = Promise.withResolvers<string>()
    let answers = 0
    const node = await start({ answer: async (text) => (answers++ === 0 ? gate.promise : `answer to ${text}`) })
    const session = sessionOf(node, 'room')
    const id = await node.runtime.agent.accept(request(session, 'one'))
    await expect.poll(() => node.asked).toEqual(['one'])
    await node.link.cut('reset')
    gate.resolve('answer to one')
    // Its end cannot be stored, so it is left behind.
    await node.runtime.agent.ended(id)
    await node.link.restore()
    await expect.poll(() => node.runtime.agent.run(request(session, 'two'))).toMatchObject({ text: 'answer to two' })
    expect(node.asked.at(-1)).toBe('two')
    expect(await node.runtime.store.turns.get(id)).toMatchObject({ status: 'done' })
    const history = await node.runtime.store.sessions.history(session, 10)
    expect(history.flatMap(({ role, content }) => (role === 'user' ? JSON.stringify(content) : []))).toEqual([
      expect.stringContaining('one'),
      expect.stringContaining('two'),
    ])
  }, 30_000)
})

describe('a node whose session was dropped because it seemed dead for a moment', () => {
  test.each(['with', 'without'] as const)(
    'runs its stored turn once more, %s a place for another turn, and its caller gets the result',
    async (place) => {
      const gate = Promise.withResolvers<string>()
      let answers = 0
      const toml = `[agent]\nmax_concurrent_turns = ${place === 'with' ? 2 : 1}`
      const first = await start({ toml, answer: async (text) => (answers++ === 0 ? gate.promise : `answer to ${text}`) })
      const second = await start()
      const session = sessionOf(second, 'room')
      const one = first.runtime.agent.run({ ...request(session, 'one'), idempotency: { scope: 'test', key: 'k1' } })
      await expect.poll(() => first.asked).toEqual(['one'])
      const two = second.runtime.agent.run(request(session, 'two'))
      // What another process does at its first turn for sessions of processes that do not beat.
      await inDatabase("DELETE FROM leases WHERE name LIKE 'session/%'")
      gate.resolve('too late')
      const late = sleep(10_000, 'waits for ever')
      expect(await Promise.race([one, late])).toMatchObject({ text: 'answer to one' })
      expect(await two).toMatchObject({ text: 'answer to two' })
      const history = await second.runtime.store.sessions.history(session, 10)
      expect(history.filter(({ role }) => role === 'user')).toHaveLength(2)
    },
  )
})

describe('a node that dies', () => {
  test('its stored turn is run once more by the owner of the shard, and its caller gets that result', async () => {
    const stuck = new Promise<string>(() => undefined)
    const first = await start({ answer: () => stuck })
    const second = await start()
    const session = sessionOf(second, 'room')
    const idempotency = { scope: 'test', key: 'k1' }
    const one = first.runtime.agent.run({ ...request(session, 'one'), idempotency })
    one.catch(() => undefined)
    await expect.poll(() => first.asked).toEqual(['one'])
    expect(second.asked).toEqual([])
    await first.link.cut('reset')
    await expect.poll(() => second.asked).toEqual(['one'])
    // The node comes back, notices that its lease is lost, and answers its caller with the result of the other node.
    await first.link.restore()
    expect(await one).toMatchObject({ text: 'answer to one' })
    expect(await turnsOf(second, session)).toMatchObject([{ status: 'done', starts: 2, response: 'answer to one' }])
    expect((await second.runtime.store.sessions.history(session, 10)).length).toBe(2)
  }, 40_000)

  test('its stored turns go before a later one of their session', async () => {
    const stuck = new Promise<string>(() => undefined)
    const first = await start({ answer: () => stuck })
    const second = await start()
    const session = sessionOf(second, 'room')
    await first.runtime.agent.accept(request(session, 'one'))
    await first.runtime.agent.accept(request(session, 'two'))
    await expect.poll(() => first.asked).toEqual(['one'])
    await first.link.cut('reset')
    expect(await second.runtime.agent.run(request(session, 'three'))).toMatchObject({ text: 'answer to three' })
    expect(second.asked).toEqual(['one', 'two', 'three'])
    await first.link.restore()
  }, 40_000)

  test('a turn that was not stored ends with its node, and its session and its place among the turns in flight are free', async () => {
    const stuck = new Promise<string>(() => undefined)
    const toml = '[limits]\nturns_in_flight = 1'
    const first = await start({ answer: () => stuck, toml })
    const second = await start({ toml })
    const session = sessionOf(first, 'room')
    const limited = { client: 'device:d1', standing: 'listed' } as const
    const one = first.runtime.agent.run({ ...request(session, 'one'), limited })
    one.catch(() => undefined)
    await expect.poll(() => first.asked).toEqual(['one'])
    await expect(second.runtime.agent.run({ ...request(session, 'two'), limited })).rejects.toMatchObject({ code: 'rate_limited' })
    await first.link.cut('reset')
    await expect
      .poll(() => second.runtime.agent.run({ ...request(session, 'two'), limited }), { interval: 250 })
      .toMatchObject({ text: 'answer to two' })
    await first.link.restore()
    await expect(one).rejects.toThrow()
    expect((await turnsOf(second, session)).map(({ status }) => status)).toEqual(['done'])
  }, 40_000)

  test('a node that stops leaves its stored turn to the others at once', async () => {
    const stuck = new Promise<string>(() => undefined)
    const first = await start({ answer: () => stuck })
    const second = await start()
    const session = sessionOf(second, 'room')
    const id = await first.runtime.agent.accept(request(session, 'one'))
    await expect.poll(() => first.asked).toEqual(['one'])
    await first.close()
    // The leases of a node that ends without a word last for six seconds.
    await expect.poll(() => second.runtime.store.turns.get(id), { timeout: 4000 }).toMatchObject({ status: 'done' })
    expect(second.asked).toEqual(['one'])
  })
})

describe('an abort from another node', () => {
  test('ends a stored turn and one that is not stored, for its owner only', async () => {
    const stuck = new Promise<string>(() => undefined)
    const [first, second] = [await start({ answer: () => stuck }), await start()]
    const { agent, store } = first.runtime
    const ids: string[] = []
    const follow = first.runtime.bus.subscribe(({ envelope }) => {
      if (envelope.type === 'turn_started') ids.push(envelope.turn_id)
    })
    const streamed = agent.run(request(sessionOf(second, 'a'), 'one'))
    streamed.catch(() => undefined)
    const without = agent.run(request(null, 'two'))
    without.catch(() => undefined)
    const accepted = await agent.accept(request(sessionOf(second, 'b'), 'three'))
    await expect.poll(() => first.asked).toHaveLength(3)
    await expect.poll(() => ids).toHaveLength(3)
    follow()
    for (const id of ids) expect(await second.runtime.agent.requestAbort(id, 'somebody')).toBe(false)
    const startedMs = performance.now()
    for (const id of ids) expect(await second.runtime.agent.requestAbort(id, 'local')).toBe(true)
    await expect(streamed).rejects.toMatchObject({ code: 'aborted' })
    await expect(without).rejects.toMatchObject({ code: 'aborted' })
    await expect.poll(() => store.turns.get(accepted)).toMatchObject({ status: 'aborted' })
    expect(performance.now() - startedMs).toBeLessThan(1000)
    for (const id of ids) expect(await second.runtime.agent.requestAbort(id)).toBe(false)
  })
})

describe('what several nodes know of one conversation', () => {
  test('a turn reads no history that another node has erased, and a conversation is not erased while a turn of another node runs', async () => {
    const gate = Promise.withResolvers<string>()
    const second = await start({ answer: async (text) => (text === 'wait' ? gate.promise : `answer to ${text}`) })
    const first = await start()
    const session = sessionOf(second, 'room')
    const about = { atMs: Date.now(), by: 'local' }
    // Both nodes have the conversation in their memory.
    for (const { runtime } of [first, second]) await runtime.agent.run(request(session, 'remember this'))
    expect(await first.runtime.store.sessions.history(session, 100)).toHaveLength(4)
    const waiting = second.runtime.agent.run(request(session, 'wait'))
    await expect.poll(() => second.asked).toContain('wait')
    await expect(first.runtime.store.sessions.erase(session, about)).rejects.toMatchObject({ code: 'conflict' })
    gate.resolve('done')
    await waiting
    // The session is free as soon as the turn has ended.
    expect(await first.runtime.store.sessions.erase(session, about)).toMatchObject({ historyTurns: 3 })
    await second.runtime.agent.run(request(session, 'what was it'))
    const texts = JSON.stringify(await second.runtime.store.sessions.history(session, 100))
    expect(texts).toContain('what was it')
    expect(texts).not.toContain('remember this')
    expect(second.prompts.at(-1)).not.toContain('remember this')
  })

  test('the turns of an hour and the budget count on all nodes together', async () => {
    const toml = '[cost]\ndaily_limit_usd = 2.5\n[cost.prices."scripted-1"]\ninput = 1000000\noutput = 0\n[limits]\nturns_per_hour = 2\n'
    const [first, second] = [await start({ toml }), await start({ toml })]
    const limited = { client: 'device:d1', standing: 'listed' } as const
    for (const { runtime } of [first, second]) await runtime.agent.run({ ...request(null, 'hello'), limited })
    for (const { runtime } of [first, second])
      await expect(runtime.agent.run({ ...request(null, 'hello'), limited })).rejects.toMatchObject({ code: 'rate_limited' })
    // Each node has spent 1 USD; this is the third, and the only one above the limit that may still begin.
    await second.runtime.agent.run(request(null, 'hello'))
    // A node uses a reading of the spending for two seconds.
    await sleep(2100)
    await expect(first.runtime.agent.run(request(null, 'hello'))).rejects.toMatchObject({
      message: expect.stringContaining('Daily budget'),
    })
  })
})
