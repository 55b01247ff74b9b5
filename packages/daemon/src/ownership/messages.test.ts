import { channelLease } from '@sluice/sdk'
import { describe, expect, test, vi } from 'vitest'
import { clock, conversationIn, eventually, HIGH, idIn, LOW, setUpProcesses, startProcess } from '../testing/two-processes.ts'

setUpProcesses()

describe('two processes on one store', () => {
  test('a start does not recover a reply that another process is sending', async () => {
    const gate = Promise.withResolvers<void>()
    const first = await startProcess({ shards: LOW, send: () => gate.promise })
    await first.receive({})
    const states = async () => (await first.runtime.store.outbox.list({ limit: 10 })).map(({ state }) => state)
    await eventually(async () => expect(await states()).toEqual(['sending']))
    const second = await startProcess({ shards: HIGH })
    expect(await states()).toEqual(['sending'])
    gate.resolve()
    await eventually(async () => expect(await states()).toEqual(['sent']))
    expect([first.sent, second.sent]).toEqual([['an answer'], []])
  })

  test('a message is run by the owner of its conversation, whichever process received it', async () => {
    const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
    await first.receive({ to: conversationIn(HIGH), text: 'for the second' })
    await first.receive({ to: conversationIn(LOW), text: 'for the first' })
    await eventually(() => expect([first.sent, second.sent]).toEqual([['an answer'], ['an answer']]))
    expect(first.asked).toEqual([expect.stringContaining('for the first')])
    expect(second.asked).toEqual([expect.stringContaining('for the second')])
  })

  test('a process that takes the shards over sends nothing twice, and the earlier owner nothing more', async () => {
    const gate = Promise.withResolvers<string>()
    const first = await startProcess({ shards: LOW, answer: () => gate.promise })
    await first.receive({})
    await eventually(() => expect(first.asked).toHaveLength(1))
    const second = await startProcess({ shards: LOW })
    gate.resolve('too late')
    await eventually(() => expect(second.sent).toEqual(['an answer']))
    expect(first.sent).toEqual([])
    const { store } = second.runtime
    expect(await store.outbox.list({ limit: 10 })).toMatchObject([{ state: 'sent', text: 'an answer' }])
    expect(await store.inbox.list({ limit: 10 })).toMatchObject([{ state: 'done' }])
  })

  test('one process at a time listens on a channel', async () => {
    const listening = new Set<string>()
    const listenAs =
      (name: string) =>
      async (_: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
        listening.add(name)
        await clock.sleep(1e12, signal)
        listening.delete(name)
      }
    const first = await startProcess({ shards: LOW, listen: listenAs('first') })
    await eventually(() => expect([...listening]).toEqual(['first']))
    await startProcess({ shards: HIGH, listen: listenAs('second') })
    await eventually(() => expect(listening.size).toBe(1))
    const lease = await first.runtime.store.leases.acquire(channelLease('x', 'main'))
    await eventually(() => expect(listening.size).toBeLessThanOrEqual(1))
    await lease.release()
  })

  test('a change of another shard reads no waiting rows', async () => {
    const first = await startProcess({ shards: LOW })
    const [owned = expect.fail('it owns shards')] = first.runtime.ownership.held()
    expect(first.runtime.ownership.held({ shards: HIGH })).toEqual([])
    expect(first.runtime.ownership.held({ shards: LOW })).toEqual([owned])
    expect(first.runtime.ownership.held({ shards: null })).toEqual([owned])
  })

  test('an approval is decided by an answer that reaches another process', async () => {
    const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
    const to = conversationIn(HIGH)
    const key = { runId: idIn(HIGH, 'run'), stepId: 's' }
    const origin = { channel: 'x', account: 'bot', to, sender: to.to }
    const about = { gate: 'event', workflow: 'w', title: 'Deploy?', message: 'm', timeoutSecs: 0, origin } as const
    await second.runtime.approvals.open({ ...key, ...about })
    // The clock stands still, so that the first process has not noticed the approval when the answer arrives.
    await vi.waitFor(() => expect(second.sent).toHaveLength(1))
    const waiting = second.runtime.approvals.decision(key, new AbortController().signal)
    await first.receive({ to, sender: to.to, text: 'approve' })
    await eventually(async () => expect(await second.runtime.approvals.get(key)).toMatchObject({ state: 'approved' }))
    await eventually(async () => expect((await second.runtime.approvals.get(key))?.acknowledgedAtMs).not.toBeNull())
    expect(await waiting).toMatchObject({ state: 'approved', by: `x:${to.to}` })
    expect([...first.asked, ...second.asked]).toEqual([])
  })
})
