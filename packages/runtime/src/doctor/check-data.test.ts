import { join } from 'node:path'
import { parseConfig } from '@sluice/config'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { UNOWNED_MEMORIES } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { checkMemory, checkStorage } from './check-data.ts'

const DAY_MS = 86_400_000

test('checkStorage lists the deletions that begin a week after an upgrade, and the copy', async () => {
  const release = copyFirstRelease()
  const { log } = testHost()
  const config = await parseConfig({ features: [], dataDir: '/', configFile: 'config.toml', env: {} }, '[sessions]\nretention_days = 3\n')
  const check = async (nowMs: number) => {
    const clock = testClock(nowMs)
    const store = openStore({ file: join(release.dataDir, 'sluice.db'), clock, log })
    return checkStorage(store, config, nowMs).finally(() => store.close())
  }
  try {
    const upgradedMs = release.facts.killedAtMs + 5 * DAY_MS
    const { status, detail, fix } = await check(upgradedMs)
    expect(status).toBe('warn')
    expect(detail).toMatch(/sluice\.db\.before-schema-\d+/)
    expect(detail).toContain(`deletes nothing until ${new Date(upgradedMs + 7 * DAY_MS).toISOString()}`)
    expect(detail).toContain('9 turns of conversations')
    expect(detail).not.toContain('messages')
    expect(fix).toContain('retention_days')
    expect((await check(upgradedMs + 4 * DAY_MS)).detail).toMatch(/\d+ messages, \d+ replies, \d+ turns/)
    expect(await check(upgradedMs + 8 * DAY_MS)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^0\.\d MB in use of 512\.0 MB/),
    })
  } finally {
    release.dispose()
  }
})

test('checkMemory warns of memories without an owner', async () => {
  const owners = [{ owner: 'cli', count: 1 }]
  const count = async (owner: string) => owners.find((one) => one.owner === owner)?.count ?? 0
  const check = () => checkMemory({ owners: async () => owners, count })
  expect(await check()).toMatchObject({ status: 'ok', detail: '1 memory of 1 owner' })
  owners.push({ owner: UNOWNED_MEMORIES, count: 7 })
  expect(await check()).toMatchObject({
    status: 'warn',
    detail: expect.stringContaining(': 7'),
    fix: expect.stringContaining('sluice memory assign'),
  })
})
