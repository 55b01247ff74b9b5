import type { DeviceRow } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { type CoreServiceOptions, createCoreServices } from './core-services.ts'

const row = (id: string, given: Partial<DeviceRow> = {}): DeviceRow => ({
  ...{ id, name: `name of ${id}`, role: 'client', createdAtMs: 0 },
  ...{ lastSeenAtMs: null, lastAddress: null, expiresAtMs: null, issuedBy: null, ...given },
})

test('names the origin of each paired device, and no device that has expired', async () => {
  const clock = testClock()
  const rows = [
    row('ada', { role: 'operator' }),
    row('signed-in', { issuedBy: 'ada', expiresAtMs: clock.nowMs() + 1 }),
    row('old', { expiresAtMs: clock.nowMs() }),
  ]
  const store = { devices: { list: async () => rows, find: async (wanted: string) => rows.find(({ id }) => id === wanted) } }
  const { pairing } = createCoreServices({ store, clock } as unknown as CoreServiceOptions)
  const ada = { id: 'ada', name: 'name of ada', role: 'operator', origin: 'ada' }
  const signedIn = { id: 'signed-in', name: 'name of signed-in', role: 'client', origin: 'ada' }
  expect(await pairing?.devices()).toEqual([ada, signedIn])
  expect(await Promise.all(['ada', 'signed-in', 'old', 'unknown'].map((id) => pairing?.device(id)))).toEqual([
    ada,
    signedIn,
    undefined,
    undefined,
  ])
  expect(await Promise.all(['ada', 'signed-in', 'unknown'].map((id) => pairing?.originOf(id)))).toEqual(['ada', 'ada', 'unknown'])
})
