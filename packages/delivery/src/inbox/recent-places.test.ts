import { expect, test } from 'vitest'
import { RecentPlaces } from './recent-places.ts'
import { sessionOf } from './sessions.ts'

const message = (sender: string, { account = 'bot', to = 'room', thread = undefined as string | undefined } = {}) => ({
  account,
  sender,
  to: { to, ...(thread !== undefined && { thread }) },
})

test('a message has the session of its own agent, channel, account, conversation, thread and sender, whatever came before', () => {
  const places = new RecentPlaces()
  const variants = [
    ['main', 'chat', message('ann')],
    ['other', 'chat', message('ann')],
    ['main', 'chat2', message('ann')],
    ['main', 'chat', message('ann', { account: 'bot2' })],
    ['main', 'chat', message('ann', { to: 'room2' })],
    ['main', 'chat', message('ann', { thread: '1' })],
    ['main', 'chat', message('ann', { thread: '2' })],
    ['main', 'chat', message('bob')],
  ] as const
  for (const first of variants)
    for (const [agent, channel, one] of [first, ...variants]) {
      const place = { session: sessionOf(agent, channel, one), account: `${channel} ${one.account}` }
      expect(places.of(agent, channel, one)).toMatchObject(place)
      expect(places.of(agent, channel, one)).toMatchObject(place)
    }
})

test('the places are bounded by number and length', () => {
  const places = new RecentPlaces()
  for (let at = 0; at < 5000; at++) places.of('main', 'chat', message(`sender ${at}`))
  expect(places.size).toBe(2000)
  const long = message('x'.repeat(600))
  expect(places.of('main', 'chat', long).session).toBe(sessionOf('main', 'chat', long))
  const before = new RecentPlaces()
  before.of('main', 'chat', long)
  expect(before.size).toBe(0)
})
