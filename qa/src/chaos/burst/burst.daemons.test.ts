/** A burst on one channel of each way to receive, with kills; `pnpm chaos --suite burst` plays all channels at full size. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runBurst } from './run-burst.ts'

const MS_MAX = 60_000

test.each(['webhook', 'irc'])(
  'a burst on %s with kills loses, doubles and reorders no acknowledged message',
  { timeout: MS_MAX },
  async (channel) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-burst-'))
    const options = { profile: 'minimal', seed: 1, dir, signal: AbortSignal.timeout(MS_MAX) }
    const { row, violations } = await runBurst({ ...options, channel, messages: 60, kills: 2 })
    expect(violations, `log and history: ${dir}`).toEqual([])
    expect(row).toMatchObject({ channel, acknowledged: 60, lost: 0, doubled: 0, outOfOrder: 0, kills: 2 })
    rmSync(dir, { recursive: true, force: true })
  },
)
