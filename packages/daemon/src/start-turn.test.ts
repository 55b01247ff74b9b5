import { ALL_SHARDS, chatSessionKey } from '@sluice/sdk'
import { describe, expect, test, vi } from 'vitest'
import { createStartTurn } from './start-turn.ts'
import { eventually, setUpProcesses, startProcess } from './testing/two-processes.ts'

setUpProcesses()

const chat = (sender = 'ann') => chatSessionKey({ channel: 'x', account: 'bot', conversation: 'room', sender })

async function daemon() {
  const process = await startProcess({ shards: ALL_SHARDS })
  const startTurn = createStartTurn(process.runtime, process.deliveries)
  const start = (session: string, caller: string, key = 'r:1') => startTurn({ key, session, caller, text: 'Stand up', atMs: 0 })
  return { process, start }
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
    expect(await start('local/chat', 'local')).toBe('started')
    expect(await start('local/chat', 'local')).toBe('known')
    await eventually(async () => expect(await process.runtime.store.sessions.history('local/chat', 10)).toHaveLength(2))
    expect(await start('local/chat', 'local')).toBe('known')
    expect(process.asked).toHaveLength(1)
  })

  test('counts as started if a backup was restored after its time', async () => {
    const { process } = await daemon()
    const startTurn = createStartTurn(process.runtime, process.deliveries, 5000)
    const start = (atMs: number) => startTurn({ key: `r:${atMs}`, session: 'local/chat', caller: 'local', text: 'Stand up', atMs })
    expect(await start(5000)).toBe('known')
    expect(await start(5001)).toBe('started')
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
