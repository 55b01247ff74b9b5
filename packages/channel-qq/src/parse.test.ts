import { expect, test } from 'vitest'
import { parseEvent } from './parse.ts'

const event = { id: 'ROBOT1.0_c', content: ' ', group_openid: 'G1', author: { member_openid: 'M1' }, timestamp: '2026-01-01T00:00:00Z' }
const read = (more: object) => parseEvent('GROUP_AT_MESSAGE_CREATE', { ...event, ...more }, { account: '1' })

test('a mention alone counts when it quotes a message, and only then', () => {
  const quoted = { msg_idx: 'REFIDX_1', content: 'ticket 4711 burns' }
  expect(read({ message_type: 103, msg_elements: [quoted] })).toMatchObject([
    { text: '', addressed: 'mention', quoted: { text: 'ticket 4711 burns' } },
  ])
  expect(read({})).toEqual([])
})
