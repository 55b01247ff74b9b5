import type { Channel, DeliveryFilter, InboxRow, OutboxRow } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { checkAbsentChannels } from './check-channels.ts'

test('names each channel that is not there and for which messages or replies wait', async () => {
  const rows: Readonly<Record<string, readonly string[]>> = { pending: ['x', 'gone'], queued: ['x'], failed: ['away', 'gone'] }
  const list = async ({ state = '' }: DeliveryFilter) => (rows[state] ?? []).map((channel) => ({ channel }))
  const store = { inbox: { list: list as () => Promise<InboxRow[]> }, outbox: { list: list as () => Promise<OutboxRow[]> } }
  const channels = (...names: string[]) => names.map((name) => ({ name }) as Channel)
  expect(await checkAbsentChannels(store as never, { channels: channels('x', 'gone', 'away') })).toEqual([])
  expect(await checkAbsentChannels(store as never, { channels: channels('x') })).toMatchObject([
    { check: 'channels', status: 'fail', detail: expect.stringContaining('wait for gone,') },
    { check: 'channels', status: 'fail', detail: expect.stringContaining('wait for away,') },
  ])
})
