import { channelLease, type Lease, type ListenContext } from '@sluice/sdk'
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

  test('one process at a time may act on a connection, and a process that loses its lease closes it', async () => {
    const listening = new Set<Lease>()
    let actingMax = 0
    const listen = async (_: unknown, { lease, signal }: ListenContext): Promise<void> => {
      if (!lease) throw new Error('it listens without a lease')
      listening.add(lease)
      actingMax = Math.max(actingMax, [...listening].filter((other) => other.mayAct()).length)
      await clock.sleep(1e12, signal)
      listening.delete(lease)
    }
    const first = await startProcess({ shards: LOW, listen })
    await eventually(() => expect(listening.size).toBe(1))
    await startProcess({ shards: HIGH, listen })
    await eventually(() => expect(Math.max(0, ...[...listening].map(({ epoch }) => epoch))).toBeGreaterThan(2))
    await eventually(() => expect([...listening].map((lease) => lease.mayAct())).toEqual([true]))
    expect(actingMax).toBe(1)
    const [before] = listening
    await first.runtime.store.leases.acquire(channelLease('x', 'main'))
    expect(before?.mayAct()).toBe(false)
    await eventually(() => expect(listening).not.toContain(before))
    expect(actingMax).toBe(1)
  })

  test('a change of shards that another process owns reads nothing, and many commits are read once', async () => {
    const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
    const [owned = expect.fail('it owns shards')] = first.runtime.ownership.held()
    const reads = [
      vi.spyOn(owned.inbox, 'waiting'),
      vi.spyOn(owned.outbox, 'waiting'),
      vi.spyOn(owned.turns, 'unfinished'),
      vi.spyOn(owned.turns, 'abortsRequested'),
      vi.spyOn(owned.approvals, 'unfinished'),
      vi.spyOn(owned.sops, 'unfinished'),
    ]
    const counts = () => reads.map(({ mock }) => mock.calls.length)
    first.changed({ shards: HIGH })
    await new Promise((resolve) => setTimeout(resolve, 0))
    await clock.advance(0)
    expect(counts()).toEqual([0, 0, 0, 0, 0, 0])
    first.changed({ shards: LOW })
    await expect.poll(() => counts()).toEqual([1, 1, 1, 1, 1, 1])
    for (let commit = 0; commit < 50; commit++) await second.runtime.store.keyValue('test').set('commit', commit)
    await clock.advance(1000)
    await expect.poll(() => counts()).toEqual([2, 2, 2, 2, 2, 2])
  })

  test('an approval is decided by an answer that reaches another process', async () => {
    const [first, second] = [await startProcess({ shards: LOW }), await startProcess({ shards: HIGH })]
    const to = conversationIn(HIGH)
    const key = { runId: idIn(HIGH, 'run'), stepId: 's' }
    const origin = { channel: 'x', account: 'bot', to, sender: 'ann' }
    const about = { gate: 'event', workflow: 'w', title: 'Deploy?', message: 'm', timeoutSecs: 0, origin } as const
    await second.runtime.approvals.open({ ...key, ...about })
    // The clock is stopped, so that the first process has not noticed the approval when the answer arrives.
    await expect.poll(() => second.sent).toHaveLength(1)
    const waiting = second.runtime.approvals.decision(key, new AbortController().signal)
    await first.receive({ to, text: 'approve' })
    await eventually(async () => expect(await second.runtime.approvals.get(key)).toMatchObject({ state: 'approved' }))
    await eventually(async () => expect((await second.runtime.approvals.get(key))?.acknowledgedAtMs).not.toBeNull())
    expect(await waiting).toMatchObject({ state: 'approved', by: 'x:ann' })
    expect([...first.asked, ...second.asked]).toEqual([])
  })
})
