import { AppError, attachmentPath, type ClientId, fileOwnerOfSession, type Standing, type Tool } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import { expect, test } from 'vitest'
import { memoryBooks } from './testing/memory-books.ts'
import { hang, httpError, type Reply, scriptedModel } from './testing/scripted-model.ts'
import { request, resultsIn, type TestAgentOptions, testAgent, testTool } from './testing/test-agent.ts'
import type { ToolApprovalRequest, TurnRequest } from './turn/turn.ts'

const call = (key: string) => ({ calls: [{ name: 'add', input: { key } }] })

/** A tool that must not run twice for one key, with the keys it ran for. */
function addTool() {
  const added: string[] = []
  const add = testTool('add', (key) => `added ${added.push(key) && key}`, 'write')
  return { add, added }
}

test('an accepted turn is stored before its id is returned', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([{ text: 'done' }])] })
  const idempotency = { scope: 'roomchat', key: 'm1' }
  const id = await agent.accept(request('later', { session: 's', source: 'roomchat', idempotency }))
  expect(books.queued.get(id)).toMatchObject({ id, sessionId: 's', source: 'roomchat', input: 'later', idempotency })
  await until(() => books.ends.length === 1)
  expect(books.writes).toEqual([`enqueue ${id}`, `start ${id}`, `finish ${id}`])
  expect(books.ends).toMatchObject([{ status: 'done', response: 'done', attempts: 1, idempotency }])
})

test('a turn that begins at once is stored and started in one commit, and one that waits is started when it begins', async () => {
  const books = memoryBooks()
  const { enqueue } = books.turns
  const commit = Promise.withResolvers<void>()
  books.turns.enqueue = async (turn) => {
    await enqueue(turn)
    await commit.promise
  }
  const model = scriptedModel([{ text: 'one' }, { text: 'two' }])
  const { agent } = testAgent({ books, models: [model] })
  const accepted = [agent.accept(request('first', { session: 's' })), agent.accept(request('second', { session: 's' }))]
  await until(() => books.starts.size === 1)
  expect(books.writes).toEqual(['enqueue turn-1', 'start turn-1', 'enqueue turn-2'])
  expect(model.asked).toEqual([])
  commit.resolve()
  await Promise.all(accepted)
  await until(() => books.ends.length === 2)
  expect(books.writes.slice(3)).toEqual(['finish turn-1', 'start turn-2', 'finish turn-2'])
  expect(books.ends).toMatchObject([{ attempts: 1 }, { attempts: 1 }])
})

test('a turn that cannot be stored is refused and releases its key', async () => {
  const model = scriptedModel([{ text: 'done' }])
  const { agent, books } = testAgent({ models: [model] })
  books.fail('enqueue')
  const accepted = agent.accept(request('later', { session: 's', idempotency: { scope: 's', key: 'k' } }))
  await expect(accepted).rejects.toMatchObject({ code: 'unavailable' })
  await until(() => agent.load().running === 0)
  expect(model.asked).toEqual([])
  expect(books.released).toEqual(['k'])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('an interrupted turn resumes at its checkpoint without running finished tools again', async () => {
  const books = memoryBooks()
  const { add, added } = addTool()
  const crashing = testAgent({ books, tools: [add], models: [scriptedModel([call('one'), call('two'), hang])] })
  const id = await crashing.agent.accept(request('count', { session: 's', idempotency: { scope: 's', key: 'k' } }))
  await until(() => books.writes.length === 6)
  expect(books.writes).toEqual([`enqueue ${id}`, `start ${id}`, ...Array(4).fill(`checkpoint ${id}`)])

  const model = scriptedModel([call('three'), { text: 'all counted' }])
  const restarted = testAgent({ books, tools: [add], models: [model] })
  await expect(restarted.resume()).resolves.toBe(1)
  await until(() => books.ends.length === 1)
  expect(added).toEqual(['one', 'two', 'three'])
  expect(model.asked[0]?.prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'tool'])
  expect(resultsIn(model.asked[0]?.prompt ?? [])).toEqual(['added two'])
  expect(books.ends).toMatchObject([{ id, status: 'done', attempts: 2, response: 'all counted', idempotency: { key: 'k' } }])
  expect(books.histories.get('s')?.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
    'tool',
    'assistant',
    'tool',
    'assistant',
  ])
})

test('iterations and repeats before a crash count', async () => {
  const books = memoryBooks()
  const { add, added } = addTool()
  const options = { books, tools: [add], agent: { max_iterations: 3 } }
  await testAgent({ ...options, models: [scriptedModel([call('one'), call('one'), hang])] }).agent.accept(request('count'))
  await until(() => books.writes.length === 6)
  const model = scriptedModel([call('one'), { text: 'enough' }])
  await testAgent({ ...options, models: [model] }).resume()
  await until(() => books.ends.length === 1)
  expect(added).toEqual(['one', 'one'])
  expect(model.asked.length).toBe(2)
  expect(books.ends).toMatchObject([{ status: 'done', response: 'enough' }])
})

test('interrupted turns resume oldest first, with their client and trace', async () => {
  const books = memoryBooks()
  const before = testAgent({ books, models: [scriptedModel([hang])] })
  const first = request('first', { session: 's', source: 'webhook', caller: 'device:a' })
  for (const turn of [first, request('second', { session: 's', source: 'webhook', caller: 'device:b' })]) await before.agent.accept(turn)
  const called: { client: string; caller: string | undefined }[] = []
  const who: Tool = { ...testTool('who', () => ''), run: async (_, { client, caller }) => `call ${called.push({ client, caller })}` }
  const { agent, observations } = testAgent({
    books,
    tools: [who],
    models: [
      scriptedModel([({ prompt }) => (prompt.at(-1)?.role === 'user' ? { calls: [{ name: 'who', input: { key: 'k' } }] } : { text: 'a' })]),
    ],
    mintClient: (caller) => `client of ${caller}` as never,
  })
  await expect(agent.resume(books)).resolves.toBe(2)
  await until(() => books.ends.length === 2)
  expect(called).toEqual(['device:a', 'device:b'].map((caller) => ({ client: `client of ${caller}`, caller })))
  expect(books.ends.map(({ input }) => input)).toEqual(['first', 'second'])
  const turnsSeen = observations.filter(({ kind }) => kind === 'turn')
  expect(turnsSeen[0]).toMatchObject({ span: { trace: { traceId: first.trace.traceId } } })
})

test('a full queue does not prevent turns from resuming', async () => {
  const books = memoryBooks()
  const before = testAgent({ books, models: [scriptedModel([hang])] })
  for (const text of ['a', 'b', 'c']) await before.agent.accept(request(text))
  const { agent } = testAgent({
    books,
    models: [scriptedModel([{ text: 'done' }])],
    agent: { max_concurrent_turns: 1, max_queued_turns: 0 },
  })
  await expect(agent.resume(books)).resolves.toBe(3)
  await until(() => books.ends.length === 3)
  expect(books.ends.map(({ input }) => input)).toEqual(['a', 'b', 'c'])
})

test('live turns are not resumed', async () => {
  const model = scriptedModel([hang])
  const { agent, books } = testAgent({ models: [model] })
  await agent.accept(request('a'))
  await until(() => model.asked.length === 1)
  await expect(agent.resume(books)).resolves.toBe(0)
  expect(model.asked.length).toBe(1)
})

test('a turn that never reaches its end fails after five starts', async () => {
  const books = memoryBooks()
  for (let start = 0; start < 5; start++) {
    const { agent } = testAgent({ books, models: [scriptedModel([hang])] })
    if (start === 0) await agent.accept(request('poison'))
    else await agent.resume(books)
    await until(() => books.starts.get('turn-1') === start + 1)
  }
  const model = scriptedModel([{ text: 'never asked' }])
  await testAgent({ books, models: [model] }).resume()
  await until(() => books.ends.length === 1)
  expect(model.asked).toEqual([])
  expect(books.ends).toMatchObject([
    { status: 'failed', attempts: 6, error: { code: 'internal', message: expect.stringContaining('5 times') } },
  ])
  expect(books.queued.size).toBe(0)
})

test('a turn that a drain interrupts stays stored and unfinished', async () => {
  const books = memoryBooks()
  const { agent, clock } = testAgent({ books, models: [scriptedModel([hang])] })
  for (const text of ['running', 'waiting']) await agent.accept(request(text, { session: 's' }))
  await until(() => books.starts.size === 1)
  const drained = agent.drain(1000)
  await clock.advance(1000)
  await drained
  expect([...books.queued.values()].map(({ input }) => input)).toEqual(['running', 'waiting'])
  expect(books.ends).toEqual([])
  expect(agent.load()).toEqual({ running: 0, queued: 0, sessions: 0 })

  await testAgent({ books, models: [scriptedModel([{ text: 'now' }])] }).resume()
  await until(() => books.ends.length === 2)
  expect(books.ends.map(({ input, status }) => `${input} ${status}`)).toEqual(['running done', 'waiting done'])
})

test('an accepted turn that fails or is aborted is recorded and not resumed', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([httpError(400)])] })
  await agent.accept(request('a', { session: 's' }))
  const id = await agent.accept(request('b', { session: 's' }))
  expect(agent.abort(id, 'owner')).toBe(true)
  await until(() => books.ends.length === 2)
  expect(books.ends.map(({ input, status }) => `${input} ${status}`).toSorted()).toEqual(['a failed', 'b aborted'])
  expect(books.queued.size).toBe(0)
})

test('an accepted turn whose end cannot be stored stays stored', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([{ text: 'done' }])] })
  books.fail('finish')
  const id = await agent.accept(request('a', { idempotency: { scope: 's', key: 'k' } }))
  await until(() => books.writes.includes(`finish ${id}`))
  expect(books.queued.has(id)).toBe(true)
  expect(books.released).toEqual([])
})

test('a turn without a key writes no checkpoint', async () => {
  const { add } = addTool()
  const { agent, books } = testAgent({ tools: [add], models: [scriptedModel([call('one'), { text: 'done' }])] })
  await agent.run(request('a'))
  expect(books.writes).toEqual(['finish turn-1'])
})

test('a turn with an idempotency key is stored before it begins', async () => {
  const { add } = addTool()
  const { agent, books } = testAgent({ tools: [add], models: [scriptedModel([call('one'), { text: 'done' }])] })
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).resolves.toMatchObject({ id: 'turn-1', text: 'done' })
  expect(books.writes).toEqual(['enqueue turn-1', 'start turn-1', 'checkpoint turn-1', 'checkpoint turn-1', 'finish turn-1'])
  expect(books.ends).toMatchObject([{ status: 'done', idempotency: { key: 'k' } }])
})

test('an interrupted turn with a key resumes, and a call with effects runs once', async () => {
  const books = memoryBooks()
  const { add, added } = addTool()
  const crashing = testAgent({ books, tools: [add], models: [scriptedModel([call('one'), hang])] })
  void crashing.agent.run(request('count', { session: 's', idempotency: { scope: 's', key: 'k' } })).catch(() => undefined)
  await until(() => books.writes.length === 4)

  const restarted = testAgent({ books, tools: [add], models: [scriptedModel([{ text: 'counted' }])] })
  await expect(restarted.resume()).resolves.toBe(1)
  await until(() => books.ends.length === 1)
  expect(added).toEqual(['one'])
  expect(books.ends).toMatchObject([{ status: 'done', response: 'counted', attempts: 2, idempotency: { key: 'k' } }])
})

test('a turn with a key that cannot be stored runs nothing and releases the key', async () => {
  const model = scriptedModel([{ text: 'done' }])
  const { agent, books } = testAgent({ models: [model] })
  books.fail('enqueue', 'release')
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).rejects.toMatchObject({ code: 'unavailable' })
  await until(() => agent.load().running === 0)
  expect(model.asked).toEqual([])
  expect(books.released).toEqual(['k'])
})

const builtIn = { labels: [{ provider: 'offline', model: 'offline' }] }

test('a turn that the built-in model answers at once is stored with its end', async () => {
  const { agent, books } = testAgent({ ...builtIn, models: [scriptedModel([{ text: 'done' }])] })
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).resolves.toMatchObject({ text: 'done' })
  expect(books.writes).toEqual(['finish turn-1'])
  expect(books.ends).toMatchObject([{ status: 'done', attempts: 1, idempotency: { key: 'k' } }])
})

test('a turn of the built-in model is stored before its first call of a tool, and a call with effects runs once', async () => {
  const books = memoryBooks()
  const { add, added } = addTool()
  const models = [scriptedModel([call('one'), hang])]
  const crashing = testAgent({ ...builtIn, books, tools: [add], models })
  void crashing.agent.run(request('count', { idempotency: { scope: 's', key: 'k' } })).catch(() => undefined)
  await until(() => books.writes.length === 4)
  expect(books.writes).toEqual(['enqueue turn-1', 'start turn-1', 'checkpoint turn-1', 'checkpoint turn-1'])

  await testAgent({ ...builtIn, books, tools: [add], models: [scriptedModel([{ text: 'counted' }])] }).resume()
  await until(() => books.ends.length === 1)
  expect(added).toEqual(['one'])
  expect(books.ends).toMatchObject([{ status: 'done', attempts: 2, idempotency: { key: 'k' } }])
})

test('a tool of a turn that cannot be stored does not run', async () => {
  const { add, added } = addTool()
  const { agent, books } = testAgent({ ...builtIn, tools: [add], models: [scriptedModel([call('one'), { text: 'done' }])] })
  books.fail('enqueue')
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).rejects.toMatchObject({ code: 'unavailable' })
  expect(added).toEqual([])
  expect(books.released).toEqual(['k'])
})

test('a turn of the built-in model that waits for an earlier one is stored first', async () => {
  const gate = Promise.withResolvers<void>()
  const models = [
    scriptedModel([
      async () => {
        await gate.promise
        return { text: 'one' }
      },
      { text: 'two' },
    ]),
  ]
  const { agent, books } = testAgent({ ...builtIn, models })
  const keyed = (key: string) => request(key, { session: 's', idempotency: { scope: 's', key } })
  const turns = [agent.run(keyed('a')), agent.run(keyed('b'))]
  await until(() => books.writes.length === 1)
  expect(books.writes).toEqual(['enqueue turn-2'])
  gate.resolve()
  await Promise.all(turns)
  expect(books.writes).toEqual(['enqueue turn-2', 'finish turn-1', 'start turn-2', 'finish turn-2'])
})

test('a stop of the daemon leaves a turn with a key to the next start', async () => {
  const books = memoryBooks()
  const { agent, clock } = testAgent({ books, models: [scriptedModel([hang])] })
  const ended = agent.run(request('a', { idempotency: { scope: 's', key: 'k' } })).catch((error: unknown) => error)
  await until(() => books.starts.size === 1)
  const drained = agent.drain(1000)
  await clock.advance(1000)
  await drained
  expect(await ended).toMatchObject({ code: 'unavailable' })
  expect([...books.queued.keys()]).toEqual(['turn-1'])
  expect(books.released).toEqual([])
})

test('a stored turn whose end was not recorded resumes on request', async () => {
  const books = memoryBooks()
  const { finish } = books.turns
  let refusals = 1
  books.turns.finish = async (end) => {
    if (refusals-- > 0) throw new AppError('unavailable', 'The disk is full')
    return finish(end)
  }
  const { agent } = testAgent({ books, models: [scriptedModel([{ text: 'lost' }, { text: 'done' }])] })
  await agent.resume(books)
  await expect(agent.run(request('a', { idempotency: { scope: 's', key: 'k' } }))).rejects.toMatchObject({ code: 'unavailable' })
  await Promise.all([agent.ensureResumed('turn-1'), agent.ensureResumed('turn-1')])
  await until(() => books.ends.length === 1)
  expect(books.starts.get('turn-1')).toBe(2)
  expect(books.ends).toMatchObject([{ id: 'turn-1', status: 'done', response: 'done' }])
})

test('a stored turn that an outage of the store interrupts is not recorded as failed, and resumes', async () => {
  const books = memoryBooks()
  const { start } = books.turns
  let outages = 1
  books.turns.start = async (id) => {
    if (outages-- > 0) throw new AppError('unavailable', 'The store cannot write now', { isPassing: true })
    return start(id)
  }
  const { agent } = testAgent({ books, models: [scriptedModel([{ text: 'done' }])] })
  await agent.resume(books)
  const ended = agent.run(request('a', { session: 's', idempotency: { scope: 's', key: 'k' } }))
  await expect(ended).rejects.toMatchObject({ code: 'unavailable' })
  expect(books.ends).toEqual([])
  await agent.ensureResumed('turn-1')
  await until(() => books.ends.length === 1)
  expect(books.ends).toMatchObject([{ id: 'turn-1', status: 'done', response: 'done' }])
})

test('a turn with a known id is refused with conflict', async () => {
  const model = scriptedModel([{ text: 'done' }])
  const { agent, books } = testAgent({ models: [model] })
  const mine = { ...request('a', { session: 's' }), id: 'mine' }
  const [first, second] = await Promise.allSettled([agent.accept(mine), agent.accept(mine)])
  expect(first).toEqual({ status: 'fulfilled', value: 'mine' })
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'conflict' } })
  await agent.ended('mine')
  await expect(agent.accept(mine)).rejects.toMatchObject({ code: 'conflict' })
  await expect(testAgent({ books, models: [model] }).agent.accept(mine)).rejects.toMatchObject({ code: 'conflict' })
  await until(() => agent.load().running === 0)
  expect(model.asked.length).toBe(1)
  expect(books.ends).toMatchObject([{ id: 'mine', status: 'done' }])
})

test('ended resolves when a turn neither runs nor waits', async () => {
  const { agent, books } = testAgent({ models: [scriptedModel([hang])] })
  const [running, waiting] = [await agent.accept(request('a', { session: 's' })), await agent.accept(request('b', { session: 's' }))]
  await agent.ended('unknown')
  const ends: string[] = []
  const both = [running, waiting].map((id) => agent.ended(id).then(() => ends.push(id)))
  await until(() => books.starts.size === 1)
  expect(ends).toEqual([])
  for (const id of [waiting, running]) expect(agent.abort(id, 'owner')).toBe(true)
  await Promise.all(both)
  expect(ends.toSorted()).toEqual([running, waiting].toSorted())
  expect(books.ends.length).toBe(2)
})

test('a resumed turn keeps its limit on tools and uses the agent’s approver', async () => {
  const books = memoryBooks()
  const ran: string[] = []
  const tools = ['reach', 'other'].map((name) => testTool(name, () => `ran ${ran.push(name)}`, 'execute'))
  await testAgent({ books, tools, models: [scriptedModel([hang])] }).agent.accept(request('go', { session: 's', tools: ['reach'] }))
  await until(() => books.starts.size === 1)

  const asked: ToolApprovalRequest[] = []
  const approve = async (question: ToolApprovalRequest) => {
    asked.push(question)
    return { by: 'roomchat:alice', standing: 'operator' as const }
  }
  const calls = [
    { name: 'other', input: {} },
    { name: 'reach', input: {} },
  ]
  const model = scriptedModel([{ calls }, { text: 'done' }])
  await testAgent({ books, tools, models: [model], approve }).resume()
  await until(() => books.ends.length === 1)
  expect(ran).toEqual(['reach'])
  expect(asked).toMatchObject([{ tool: 'reach', turn: 'turn-1', session: 's', inbox: null }])
  expect(model.asked[0]?.tools?.map(({ name }) => name)).toEqual(['reach'])
})

test('a turn that waits when a link of its person ends has the standing of its own account, live and after a restart', async () => {
  let isLinked = true
  const linked: TestAgentOptions['linked'] = {
    refresh: async () => {},
    principal: (client) => (isLinked ? { ...client, person: 'channel:x/bot/ann', standing: 'operator' } : client),
  }
  const standings: (Standing | undefined)[] = []
  const who: Tool = { ...testTool('who', () => ''), run: async (_, { standing }) => `call ${standings.push(standing)}` }
  const call = { calls: [{ name: 'who', input: { key: 'k' } }] }
  const limited = { client: 'channel:x/bot/bob', standing: 'listed', channel: 'x' } as const
  const books = memoryBooks()
  const first = Promise.withResolvers<Reply>()
  const model = scriptedModel([() => first.promise, call, { text: 'done' }, hang])
  const before = testAgent({ books, linked, tools: [who], models: [model] })
  for (const text of ['first', 'second', 'third']) await before.agent.accept(request(text, { session: 's', limited }))
  isLinked = false
  first.resolve({ text: 'done' })
  await until(() => books.ends.length === 2)
  expect(standings).toEqual(['listed'])
  await testAgent({ books, linked, tools: [who], models: [scriptedModel([call, { text: 'done' }])] }).resume()
  await until(() => books.ends.length === 3)
  expect(standings).toEqual(['listed', 'listed'])
  // A turn that waits while its account is linked has the standing of the person when it begins.
  isLinked = true
  const after = testAgent({ books, linked, tools: [who], models: [scriptedModel([call, { text: 'done' }])] })
  await after.agent.ended(await after.agent.accept({ ...request('fourth', { session: 's', limited }), id: 'fourth' }))
  expect(standings.at(-1)).toBe('operator')
})

test.each(['unavailable', 'internal'] as const)('a turn whose links cannot be read, %s, is resumed or ends with a record', async (code) => {
  let fails = false
  const linked: TestAgentOptions['linked'] = {
    refresh: async () => {
      if (fails) throw new AppError(code, 'The links cannot be read', { isPassing: code === 'unavailable' })
    },
    principal: (client) => client,
  }
  const books = memoryBooks()
  const limited = { client: 'channel:x/bot/bob', standing: 'listed', channel: 'x' } as const
  const first = Promise.withResolvers<Reply>()
  const before = testAgent({ books, linked, models: [scriptedModel([() => first.promise])] })
  for (const text of ['first', 'second']) await before.agent.accept(request(text, { session: 's', limited }))
  await until(() => books.starts.size === 1)
  fails = true
  first.resolve({ text: 'done' })
  await before.agent.ended('turn-2')
  expect(before.logs).toContainEqual(expect.objectContaining({ message: 'turn failed' }))
  expect(before.events.filter(({ type }) => type === 'turn_failed')).toHaveLength(1)
  const isResumed = code === 'unavailable'
  expect(books.ends.map(({ id, status }) => `${id} ${status}`)).toEqual(['turn-1 done', ...(isResumed ? [] : ['turn-2 failed'])])
  fails = false
  const after = testAgent({ books, linked, models: [scriptedModel([{ text: 'done' }])] })
  expect(await after.resume()).toBe(isResumed ? 1 : 0)
  await after.agent.ended('turn-2')
  expect(books.ends.at(-1)).toMatchObject({ id: 'turn-2', status: isResumed ? 'done' : 'failed' })
})

test('a call in a room opens only the attachments that the conversation names', async () => {
  const opened: string[] = []
  const turn = async (session: string, more: Partial<TurnRequest>) => {
    const [here, elsewhere] = ['a', 'b'].map((text) => attachmentPath(fileOwnerOfSession(session), Buffer.from(text), 'txt'))
    const look: Tool = {
      ...testTool('look', () => ''),
      async run(_, { workspace }) {
        for (const path of [here, elsewhere])
          await workspace.read(path ?? '', { bytesMax: 9 }).then(
            () => opened.push(path === here ? 'here' : 'elsewhere'),
            () => undefined,
          )
        return 'looked'
      },
    }
    const call = { calls: [{ name: 'look', input: { key: elsewhere } }] }
    const workspace = { read: async () => new Uint8Array() }
    const { agent } = testAgent({ workspace, tools: [look], models: [scriptedModel([call, { text: 'done' }])] })
    await agent.run(request(`[Document: a.txt] ${here}`, { session, ...more }))
    return opened.splice(0)
  }
  expect(await turn('channel:x/bot/room/ann', { isInRoom: true })).toEqual(['here'])
  expect(await turn('channel:x/bot/ann/ann', {})).toEqual(['here', 'elsewhere'])
  expect(await turn('channel:x/bot/room/', { isInRoom: true })).toEqual(['here', 'elsewhere'])
})

test('the state of a tool belongs to each writer of a conversation in a room, and to the person in direct chats', async () => {
  const seen: string[] = []
  const page: Tool = { ...testTool('page', () => ''), run: async (_, { client }) => `page ${seen.push(client)}` }
  const [ann, bob] = ['channel:x/bot/ann' as ClientId, 'channel:x/bot/bob' as ClientId]
  const turn = async (session: string, client: ClientId, isInRoom?: true) => {
    const models = [scriptedModel([{ calls: [{ name: 'page', input: { key: 'k' } }] }, { text: 'done' }])]
    const { agent } = testAgent({ tools: [page], models })
    await agent.run(request('look', { session, client, ...(isInRoom && { isInRoom }) }))
  }
  for (const session of ['channel:x/bot/ann/ann', 'channel:x/bot/other/ann']) await turn(session, ann)
  expect(seen).toEqual([ann, ann])
  await turn('channel:x/bot/room/ann', ann, true)
  for (const client of [ann, bob, ann]) await turn('channel:x/bot/room/', client, true)
  // A turn of an earlier release does not say that it is in a room.
  await turn('channel:x/bot/room/', bob)
  const [, , alone, annInRoom, bobInRoom, ...again] = seen
  expect(new Set([ann, bob, alone, annInRoom, bobInRoom]).size).toBe(5)
  expect(again).toEqual([annInRoom, bobInRoom])
})

test('a resumed turn keeps the limits of its room, and tells its tools that others read the answer', async () => {
  const books = memoryBooks()
  const room = { key: 'room:x/bot/team', turnsPerHour: 3, usdPerDay: 1 }
  const limited = { client: 'channel:x/bot/bob', standing: 'listed', channel: 'x', name: 'Bob', room } as const
  const before = testAgent({ books, models: [scriptedModel([hang])] })
  await before.agent.accept(request('first', { session: 's', limited, isInRoom: true }))
  const asked: unknown[] = []
  const admission = {
    hasOwnSpendingLimit: () => false,
    checkSpending: async (client: unknown) => void asked.push(client),
    spent: async () => {},
  }
  const seen: unknown[] = []
  const who: Tool = { ...testTool('who', () => ''), run: async (_, { isInRoom }) => `call ${seen.push(isInRoom)}` }
  const models = [scriptedModel([{ calls: [{ name: 'who', input: { key: 'k' } }] }, { text: 'done' }])]
  await testAgent({ books, tools: [who], admission: admission as never, models }).resume()
  await until(() => books.ends.length === 1)
  expect(asked[0]).toEqual(limited)
  expect(seen).toEqual([true])
})
