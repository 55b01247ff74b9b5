import { setTimeout } from 'node:timers/promises'
import { httpError } from '@sluice/agent/testing/scripted-model'
import { ALL_SHARDS, chatSessionKey, type OperatorNotice, type UnansweredTurn } from '@sluice/sdk'
import { describe, expect, test, vi } from 'vitest'
import { createStartTurn } from './start-turn.ts'
import { clock, eventually, type ProcessOptions, setUpProcesses, startProcess } from './testing/two-processes.ts'

setUpProcesses()

const chat = (sender = 'ann') => chatSessionKey({ channel: 'x', account: 'bot', conversation: 'room', sender })

async function daemon(options: Pick<ProcessOptions, 'answer' | 'config'> = {}) {
  const process = await startProcess({ shards: ALL_SHARDS, ...options })
  const told: OperatorNotice[] = []
  const startTurn = createStartTurn(process.runtime, process.deliveries, (notice) => told.push(notice))
  const start = (session: string, caller: string, key = 'r:1') => startTurn({ key, session, caller, text: 'Stand up', atMs: 0 })
  /** Asks as the reminders do, until nothing is left to do. */
  const toEnd = async () => {
    for (let earlier: UnansweredTurn | undefined; ; ) {
      const outcome = await startTurn({
        key: 'r:1',
        session: 'local/chat',
        caller: 'local',
        text: 'Stand up',
        atMs: 0,
        ...(earlier && { earlier }),
      })
      if (typeof outcome !== 'object') return outcome
      earlier = outcome
      for (; process.runtime.agent.live().length > 0; await setTimeout(1)) await clock.advance(1000)
      await clock.advance(Math.max(0, outcome.atMs - clock.nowMs()))
    }
  }
  return { process, start, toEnd, told }
}

describe('a turn that a client asked for earlier', () => {
  test('is answered in the conversation it came from, once for its key', async () => {
    const { process, start } = await daemon()
    for (let times = 0; times < 3; times++) expect(await start(chat(), 'channel:x/bot/ann')).toBe('started')
    await eventually(() => expect(process.sent).toEqual(['an answer']))
    await start(chat(), 'channel:x/bot/ann', 'r:2')
    await eventually(() => expect(process.sent).toHaveLength(2))
    expect(process.asked).toHaveLength(2)
    expect(await process.runtime.store.outbox.list({ limit: 10 })).toMatchObject([{ to: { to: 'room' } }, { to: { to: 'room' } }])
  })

  test('of a channel answers no approval and starts no procedure', async () => {
    const { process, start } = await daemon()
    const matchReply = vi.spyOn(process.runtime.approvals, 'matchReply')
    await start(chat(), 'channel:x/bot/ann')
    await eventually(() => expect(process.sent).toHaveLength(1))
    expect(matchReply).not.toHaveBeenCalled()
  })

  test('continues the session of a device, once for its key', async () => {
    const { process, start } = await daemon()
    for (let times = 0; times < 2; times++) expect(await start('local/chat', 'local')).toMatchObject({ attempt: 1 })
    await eventually(async () => expect(await process.runtime.store.sessions.history('local/chat', 10)).toHaveLength(2))
    expect(await start('local/chat', 'local')).toBe('known')
    expect(process.asked).toHaveLength(1)
  })

  test('of a device is tried again while the model is away', async () => {
    let failures = 8
    const { process, toEnd, told } = await daemon({
      async answer() {
        if (failures-- > 0) throw httpError(503)
        return 'an answer'
      },
    })
    expect(await toEnd()).toBe('known')
    const messages = await process.runtime.store.sessions.history('local/chat', 10)
    expect(JSON.stringify(messages)).toMatch(/Stand up.*an answer/)
    expect(messages).toHaveLength(2)
    expect(told).toEqual([])
  })

  test.each([
    { status: 503, hours: 1, kinds: ['given_up'] },
    { status: 401, hours: 0, kinds: [] },
  ])('of a device whose model answers $status for ever ends with a notice after $hours h', async ({ status, hours, kinds }) => {
    const { process, toEnd, told } = await daemon({
      config: '[delivery]\nmax_age_hours = 1\n',
      answer: () => Promise.reject(httpError(status)),
    })
    const startedMs = clock.nowMs()
    for (let times = 0; times < 2; times++) {
      expect(await toEnd()).toBe('known')
      expect(Math.floor((clock.nowMs() - startedMs) / 3_600_000)).toBe(hours)
      const messages = await process.runtime.store.sessions.history('local/chat', 10)
      expect(JSON.stringify(messages)).toMatch(/Stand up.*This message could not be answered\./)
      expect(messages).toHaveLength(2)
    }
    expect(new Set(told.map(({ kind }) => kind))).toEqual(new Set(kinds))
  })

  test('counts as started if a backup was restored after its time', async () => {
    const { process } = await daemon()
    const startTurn = createStartTurn(process.runtime, process.deliveries, () => {}, 5000)
    const start = (atMs: number) => startTurn({ key: `r:${atMs}`, session: 'local/chat', caller: 'local', text: 'Stand up', atMs })
    expect(await start(5000)).toBe('known')
    expect(await start(5001)).toMatchObject({ attempt: 1 })
    await eventually(() => expect(process.asked).toHaveLength(1))
  })

  test('is refused for a device that was revoked, and when the channel is not connected', async () => {
    const { process, start } = await daemon()
    expect(await start('ada/chat', 'device:ada')).toBe('gone')
    const other = chatSessionKey({ channel: 'y', account: 'bot', conversation: 'room', sender: 'ann' })
    // A room has no person of its own.
    expect(await start(chatSessionKey({ channel: 'x', account: 'bot', conversation: 'room' }), 'device:ada')).toBe('gone')
    await expect(start(other, 'channel:y/bot/ann')).rejects.toMatchObject({ code: 'unavailable' })
    expect(process.asked).toEqual([])
  })
})
