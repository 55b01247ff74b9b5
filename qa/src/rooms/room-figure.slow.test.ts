/** A busy room costs no more than its mentions: the whole figure. */
import { expect, test } from 'vitest'
import { countRoom } from './room-figure.ts'

test('40 people who write 2,000 messages with 60 mentions cost 60 turns, and at most 1.3 times the input tokens of direct messages', async () => {
  const { room, direct } = await countRoom({ people: 40, messages: 2000, mentions: 60 })
  console.info(`tokens: ${room.tokens} in the room, ${direct.tokens} as direct messages`)
  expect([room.turns, direct.turns]).toEqual([60, 60])
  expect(room.tokens / direct.tokens).toBeLessThanOrEqual(1.3)
}, 300_000)
