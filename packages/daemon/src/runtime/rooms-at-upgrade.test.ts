import { chatSessionKey, ROOMS, roomKey, type SessionRow } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, it } from 'vitest'
import { keepRoomsOfPersons } from './rooms-at-upgrade.ts'

const ROOM = { channel: 'x', account: 'bot', conversation: 'room' }
const row = (id: string, lastActiveAtMs = 1): SessionRow => ({ id, name: null, createdAtMs: 1, lastActiveAtMs, messageCount: 2 })

function storeOf(ids: readonly string[]) {
  const host = testHost()
  const store = {
    keyValue: () => host.keyValue,
    sessions: { list: async ({ before }: { before?: Pick<SessionRow, 'id'> }) => (before ? [] : ids.map((id) => row(id))) },
  } as never as Parameters<typeof keepRoomsOfPersons>[0]['store']
  return { host, store, keys: host.keyValue }
}

it('gives a person rule to each room that has a conversation, of any agent and thread, once', async () => {
  const { host, store, keys } = storeOf([
    chatSessionKey({ ...ROOM, sender: 'ann' }),
    `agent:help/${chatSessionKey({ ...ROOM, conversation: 'second', thread: '5', sender: 'ann' })}`,
    chatSessionKey({ ...ROOM, conversation: 'ann', sender: 'ann' }),
  ])
  await keepRoomsOfPersons({ store, log: host.log })
  const second = { ...ROOM, conversation: 'second' }
  expect(await keys.list('room:', 10)).toEqual([ROOM, second].map((room) => ({ key: roomKey(room), value: { session: 'person' } })))
  await keys.set(roomKey(ROOM), { session: 'shared' })
  await keepRoomsOfPersons({ store, log: host.log })
  expect(await keys.get(roomKey(ROOM))).toEqual({ session: 'shared' })
})

it('writes no rule where nothing was said before', async () => {
  const { host, store, keys } = storeOf([])
  await keepRoomsOfPersons({ store, log: host.log })
  expect(await keys.list('room:', 10)).toEqual([])
  expect(ROOMS).toBe('gateway:rooms')
})
