/** `sluice limits`, on a store that no other process has open. */
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { openStore } from '@sluice/store'
import { afterEach, expect, test } from 'vitest'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

test('the table has the key that `limits reset` takes, and the name of a device in its own column', async () => {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
  const device = { name: 'phone', role: 'client', createdAtMs: 0, expiresAtMs: null } as const
  for (const id of ['d1', 'd2']) await store.devices.add({ ...device, id, tokenHash: id })
  const held = { cause: 'turns_per_hour', sinceMs: Date.now(), untilMs: Date.now() + 3_600_000 } as const
  for (const client of ['device:d1', 'device:d2', 'channel:telegram/bot/1']) await store.admissions.hold({ client, ...held }, 0)
  await store.close()
  const sluice = (...argv: string[]) => sluiceWith([])('limits', ...argv, '--data-dir', dir)
  const { out } = await sluice('list')
  expect(out).toMatch(/^until +cause +client +name$/m)
  expect(out).toMatch(/ device:d1 +device "phone"$/m)
  expect(out).toMatch(/ device:d2 +device "phone"$/m)
  expect(out).toMatch(/ channel:telegram\/bot\/1 *$/m)
  expect((await sluice('reset', 'device:d1')).out).toBe('reset device:d1\n')
  const after = (await sluice('list')).out
  expect(after).not.toContain('device:d1')
  expect(after).toContain('device:d2')
})
