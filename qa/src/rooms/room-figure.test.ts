/** A busy room costs no more than its mentions: the short form of the figure. */
import { expect, test } from 'vitest'
import { countRoom } from './room-figure.ts'

test('10 people who write 120 messages with 6 mentions cost 6 turns, and at most 1.3 times the input tokens of direct messages', async () => {
  const { room, direct } = await countRoom({ people: 10, messages: 120, mentions: 6 })
  expect([room.turns, direct.turns]).toEqual([6, 6])
  expect(room.tokens / direct.tokens).toBeLessThanOrEqual(1.3)
}, 60_000)
