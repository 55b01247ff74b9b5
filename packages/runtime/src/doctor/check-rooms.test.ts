import { roomKey } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { checkRooms } from './check-rooms.ts'

test('warns of a room whose rule cannot be read, and of no other', async () => {
  const rules = memoryKeyValue()
  const store = { keyValue: () => rules }
  const room = (conversation: string) => roomKey({ channel: 'x', account: 'bot', conversation })
  await rules.set(room('fine'), { respond: 'judge' })
  await rules.set('upgraded', true)
  expect(await checkRooms(store)).toEqual([])
  await rules.set(room('later'), { respond: 'judge', mood: 'good' })
  expect(await checkRooms(store)).toMatchObject([
    {
      check: 'rooms',
      status: 'warn',
      detail: expect.stringMatching(/x\/bot\/later.*: mood$/),
      fix: expect.stringMatching(/^upgrade this node\. .*sluice rooms set x\/bot\/later mood=$/),
    },
  ])
})
