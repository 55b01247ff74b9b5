/** The memory of idle accounts stays below its bar; `pnpm accounts` measures every channel with twenty of them. */
import { expect, test } from 'vitest'
import { CHANNELS } from '../channels.ts'
import { measureAccounts } from './measure-accounts.ts'

test('an idle account of a channel with a connection stays below its bar', { timeout: 60_000 }, async () => {
  const channel = CHANNELS.find(({ name }) => name === 'irc')
  if (!channel) throw new Error('There is no channel irc.')
  const row = await measureAccounts(channel, 3)
  expect(row).toMatchObject({ channel: 'irc', accounts: 3, by: 'a connection', met: true })
  expect(row.usedMiB).toBeGreaterThan(0)
})
