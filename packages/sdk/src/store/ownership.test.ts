import { expect, test } from 'vitest'
import { channelLease, isLeaseLost, type LeaseName, leaseLost, SHARDS, shardsLease, shardsOf } from '../values/lease.ts'
import { changeLane, commandLane, shardOf, shardOfConversation, shardOfSession, shardOfTurn } from './ownership.ts'

// Stored work is found by these numbers, so they must stay the same in every release.
test.each([
  ['', 0xc5],
  ['a', 0xed],
  ['foobar', 0xb2],
  ['naïve 👩‍👩‍👧', 0xe7],
  ['channel:telegram/main/1234', 0xc5],
])('puts %j into the same shard in every release', (key, shard) => {
  expect(shardOf(key)).toBe(shard)
})

test('spreads keys over all shards', () => {
  const counts = new Map<number, number>()
  for (let at = 0; at < 25_600; at++) counts.set(shardOf(`key ${at}`), (counts.get(shardOf(`key ${at}`)) ?? 0) + 1)
  expect(counts.size).toBe(SHARDS)
  expect(Math.min(...counts.values())).toBeGreaterThan(50)
  expect(Math.max(...counts.values())).toBeLessThan(200)
})

test('a conversation shares its shard with its sessions, threads, senders and agents', () => {
  const shard = shardOfConversation({ channel: 'slack', account: 'a/b', to: { to: 'C 1' } })
  const sessions = [
    'channel:slack/a%2Fb/C%201/U1',
    'channel:slack/a%2Fb/C%201/U2',
    'channel:slack/a%2Fb/C%201/1700.5/U1',
    'agent:sales/channel:slack/a%2Fb/C%201/U1',
    'agent:sales/channel:slack/a%2Fb/C%201/1700.5/U1',
  ]
  expect(sessions.map(shardOfSession)).toEqual(sessions.map(() => shard))
  for (const lane of [changeLane, commandLane])
    expect(sessions.map((session) => shardOfSession(lane(session)))).toEqual(sessions.map(() => shard))
  expect(shardOfSession('channel:slack/a%2Fb/C%202/U1')).not.toBe(shard)
})

test('any other session has the shard of its text', () => {
  for (const session of ['room', '', 'channel:slack', 'channel:slack/a/b', 'channel:slack/a/b/c/d/e', 'my channel:slack/a/b/c'])
    expect(shardOfSession(session)).toBe(shardOf(session))
})

test('a turn has the shard of its session, or of its id without one', () => {
  expect([shardOfTurn('room', 't1'), shardOfTurn(null, 't1')]).toEqual([shardOf('room'), shardOf('t1')])
})

test('names leases and reads their shards', () => {
  expect(shardsOf(shardsLease({ from: 0, to: 255 }))).toEqual({ from: 0, to: 255 })
  expect(shardsOf(shardsLease({ from: 7, to: 7 }))).toEqual({ from: 7, to: 7 })
  expect(channelLease('mail', 'a/b@c')).toBe('channel/mail/a%2Fb%40c')
  for (const name of ['leader/cron', 'session/shards/0-1', channelLease('x', 'y')] as const) expect(shardsOf(name)).toBeNull()
  for (const name of ['shards/2-1', 'shards/0-256', 'shards/-1-1', 'shards/0-1-2'] as LeaseName[])
    expect(() => shardsOf(name)).toThrow(RangeError)
})

test('recognises a lost lease by its error only', () => {
  expect(isLeaseLost(leaseLost('leader/cron'))).toBe(true)
  expect(leaseLost('leader/cron')).toMatchObject({ code: 'unavailable', status: 503 })
  expect(isLeaseLost(new Error('lost'))).toBe(false)
})
