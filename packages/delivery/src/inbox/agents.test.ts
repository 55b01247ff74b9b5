/** Messages of several agents: each is answered by the agent of its conversation, with the files of that agent. */
import { AppError, agentOfSession } from '@sluice/sdk'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { expect, it } from 'vitest'
import { bench, clock, message, settle, setUpDeliveries } from '../testing/delivery-bench.ts'

setUpDeliveries()

const text = (attachment: { readonly source: object } | undefined): string =>
  attachment && 'bytes' in attachment.source ? Buffer.from(attachment.source.bytes as Uint8Array).toString() : 'no bytes'

const workspaces = { main: memoryWorkspace({ 'a.txt': 'of main' }), support: memoryWorkspace({ 'a.txt': 'of support' }, '/support') }
const agentOf = ({ conversation }: { readonly conversation: string }) => (conversation === 'help' ? 'support' : 'main')
const files = { limits: { text: 100, unit: 'utf16', attachments: { count: 2, bytesMax: 100 } } } as const

it('runs each turn in a session of the agent of its conversation, and replies there', async () => {
  const { turns, sent, receive } = await bench({ agentOf, workspaces })
  await receive(message('1', { to: { to: 'help' } }), message('2', { to: { to: 'room' } }))
  await settle()
  const [help, room] = turns
  expect([help?.session, room?.session]).toEqual([
    'agent:support/channel:x/our-number/help/%2B15550002222',
    'channel:x/our-number/room/%2B15550002222',
  ])
  expect(help?.caller).toBe(room?.caller)
  expect(sent.map(({ to }) => to)).toMatchObject([{ to: 'help' }, { to: 'room' }])
})

it('attaches files of the workspace of the agent that replies, also after a restart before the sending', async () => {
  let isAway = true
  const send = async () => {
    if (isAway) throw new AppError('unavailable', 'away')
    return { id: 'sent' }
  }
  const first = await bench({ agentOf, workspaces, channel: files, send, turn: () => '[FILE:a.txt]' })
  await first.receive(message('1', { to: { to: 'help' } }), message('2', { to: { to: 'room' } }))
  await settle()
  expect(first.sent).toEqual([])
  await first.deliveries.stop(0)
  // A process that still owned the shards would take them back, and each owner recovers what the other one is sending.
  await first.ownership.stop()
  isAway = false
  const { store } = first
  const next = await bench({ store, agentOf: () => 'main', workspaces, channel: files, send })
  await clock.advance(3_600_000)
  await settle()
  expect(next.sent.map(({ to, attachments }) => [(to as { to: string }).to, text(attachments?.[0])]).sort()).toEqual([
    ['help', 'of support'],
    ['room', 'of main'],
  ])
})

it('keeps the agent of a message that arrived before the configuration changed', async () => {
  const routes = { agent: 'support' }
  const waiting = Promise.withResolvers<string>()
  const { turns, receive } = await bench({ agentOf: () => routes.agent, workspaces, turn: () => waiting.promise, turnsMax: 1 })
  await receive(message('1'), message('2'))
  await settle()
  routes.agent = 'main'
  await receive(message('3'))
  waiting.resolve('ok')
  await settle()
  expect(turns.map(({ session }) => agentOfSession(session)).sort()).toEqual(['main', 'support', 'support'])
})

it('waits with a message of an agent that is not configured, and runs it once the agent is there', async () => {
  const configured: { support?: (typeof workspaces)['support'] } = {}
  const { turns, receive, store } = await bench({ agentOf, workspaces: configured })
  await receive(message('1', { to: { to: 'help' } }))
  await settle()
  expect(turns).toEqual([])
  expect(await store.inbox.get(1)).toMatchObject({ state: 'pending', error: expect.stringContaining('Agent "support" was removed') })
  configured.support = workspaces.support
  await clock.advance(3_600_000)
  await settle()
  expect(turns.map(({ session }) => agentOfSession(session))).toEqual(['support'])
})
