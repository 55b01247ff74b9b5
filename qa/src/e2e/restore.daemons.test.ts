/** A restored backup repeats nothing: a person decides on messages that may have been sent since it was made. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { restoreBackup } from '@sluice/backup/restore'
import { writeBackup } from '@sluice/backup/write'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { chatDaemons } from '../daemons/chat-daemon.ts'
import { CHATS } from '../daemons/chats.ts'

const start = chatDaemons()
const OFFLINE = '[provider]\nkind = "offline"\n'
const HOUR_MS = 3_600_000

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'restore-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe.each(CHATS)('%s', (name) => {
  test('a reply that waited in the backup is not sent again, and neither are answers to later messages', async () => {
    const daemon = await start({ chats: [name], toml: OFFLINE })
    const { dataDir } = daemon
    const chat = daemon.chat(name)
    chat.failSend({ fault: 'status', status: 503, headers: { 'retry-after': '60' }, body: {} })
    chat.say({ text: 'one' })
    await daemon.until(async () => (await daemon.daemon.runtime.store.outbox.counts()).failed === 1)
    await daemon.down()
    const file = join(folder, 'one.tar')
    const configFile = join(dataDir, 'config.toml')
    await writeBackup({ file, configFile, dataDir, features: always, env: {}, version: '0.0.0', withSecrets: true, isPaced: false })

    await daemon.up()
    await daemon.until(() => chat.sent().length === 1, 1000)
    chat.say({ text: 'two' })
    await daemon.until(() => chat.sent().length === 2)
    await daemon.idle()
    await daemon.down()
    const { marked } = await restoreBackup({
      file,
      passphrase: async () => undefined,
      dataDir,
      clock: testClock(daemon.clock.nowMs()),
      log: testHost().log,
    })
    expect(marked).toMatchObject({ messages: 0, replies: 1 })

    await daemon.up()
    await daemon.pass(HOUR_MS)
    const { outbox } = daemon.daemon.runtime.store
    expect((await outbox.list({ limit: 10 })).map(({ state }) => state)).toContain('ambiguous')
    expect(chat.sent()).toHaveLength(2)
  })
})
