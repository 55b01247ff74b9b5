import type { ClientId } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { eventually, HIGH, idIn, LOW, setUpProcesses, startProcess } from '../testing/two-processes.ts'

setUpProcesses()

const request = (session: string, text: string) => ({ source: 'test', session, text, client: 'client' as ClientId, owner: 'local' })

test('a start does not resume a turn that another process runs', async () => {
  const gate = Promise.withResolvers<string>()
  const first = await startProcess({ shards: LOW, answer: () => gate.promise })
  const id = await first.runtime.agent.accept(request(idIn(LOW, 's'), 'hello'))
  await eventually(() => expect(first.asked).toHaveLength(1))
  const second = await startProcess({ shards: HIGH })
  gate.resolve('done')
  await eventually(async () => expect(await second.runtime.store.turns.get(id)).toMatchObject({ status: 'done', starts: 1 }))
  expect(second.asked).toEqual([])
})

test('turns of one session run one after another in its owner, whichever process got them', async () => {
  const gate = Promise.withResolvers<string>()
  const first = await startProcess({ shards: LOW, answer: () => gate.promise })
  const second = await startProcess({ shards: HIGH })
  const session = idIn(LOW, 's')
  const [one, two] = [first.runtime.agent.run(request(session, 'one')), second.runtime.agent.run(request(session, 'two'))]
  await eventually(() => expect(first.asked).toHaveLength(1))
  gate.resolve('done')
  await eventually(() => expect(first.asked).toHaveLength(2))
  expect(await one).toMatchObject({ text: 'done' })
  const parts: unknown[] = []
  void two.then((result) => parts.push(result))
  await eventually(() => expect(parts).toMatchObject([{ text: 'done', replies: [] }]))
  expect(second.asked).toEqual([])
  expect(await second.runtime.store.sessions.history(session, 10)).toHaveLength(4)
})

test('an abort reaches the turn in the process that runs it', async () => {
  const first = await startProcess({ shards: LOW, answer: () => new Promise(() => {}) })
  const second = await startProcess({ shards: HIGH })
  const id = await second.runtime.agent.accept(request(idIn(LOW, 's'), 'hello'))
  await eventually(() => expect(first.asked).toHaveLength(1))
  expect(await second.runtime.agent.requestAbort(id, 'another')).toBe(false)
  expect(await second.runtime.agent.requestAbort(id, 'local')).toBe(true)
  await eventually(async () => expect(await second.runtime.store.turns.get(id)).toMatchObject({ status: 'aborted' }))
})

test('an idempotency key that one process claimed is known to the other', async () => {
  const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
  const idempotency = { scope: 's', key: 'k' }
  await first.runtime.agent.run({ ...request(idIn(LOW, 's'), 'hello'), idempotency })
  expect(await second.runtime.store.idempotency.turnOf(idempotency)).toBe(await first.runtime.store.idempotency.turnOf(idempotency))
})
