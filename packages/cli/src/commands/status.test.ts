/** `sluice status`, on a store that no daemon has open. */
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { afterEach, describe, expect, test } from 'vitest'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

function arrange() {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const run = sluiceWith([])
  return { dir, status: (...argv: string[]) => run('status', ...argv, '--data-dir', dir) }
}

describe('sluice status', () => {
  test('says that no daemon runs, and creates no database', async () => {
    const { dir, status } = arrange()
    expect(await status()).toMatchObject({ code: 1, out: `not running: no daemon runs on ${dir}\n` })
  })

  test('prints the problems of the daemon, and exits with 4 for a warning with --check', async () => {
    const { dir, dispose } = scratch('[log]\nlevel = "error"\n[security.sandbox]\nenabled = false\n')
    cleanups.push(dispose)
    const offline = defineFeature({
      id: 'provider-offline',
      build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
    })
    const configFile = join(dir, 'config.toml')
    const daemon = await startDaemon({ features: [offline], dataDir: dir, configFile, env: {}, profile: 'test', version: '0', port: 0 })
    const status = (...argv: string[]) => sluiceWith([])('status', ...argv, '--data-dir', dir)
    try {
      const { code, out } = await status()
      expect(code).toBe(0)
      expect(out).toMatch(/^warning {6}Commands run without a sandbox/m)
      expect((await status('--check')).code).toBe(4)
      expect(JSON.parse((await status('--check', '--json')).out)).toMatchObject({ problems: [{ about: 'sandbox', state: 'warning' }] })
    } finally {
      await daemon.stop()
    }
  })

  test('counts waiting and failed work', async () => {
    const { dir, status } = arrange()
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
    const message = { id: 'm1', account: 'bot', sender: 's', to: { to: 'r' }, text: 'hello' }
    const receivedAtMs = systemClock.nowMs() - 90_000
    await store.inbox.keep({ channel: 'x', verdict: 'v', raw: null, receivedAtMs, messages: [{ session: 'r', message }] })
    await store.close()
    const { code, out } = await status()
    expect(code).toBe(1)
    expect(out).toMatch(/^messages: {4}1 waiting, the oldest for (?:9\d|[1-9]\d\d) s$/m)
    expect(out).toMatch(/^replies: {5}0 waiting$/m)
    expect(out).toMatch(/^given up: {4}0 messages, 0 replies; 0 replies ambiguous, so perhaps sent$/m)
    expect(out).toMatch(/^approvals: {3}0 waiting$/m)
    expect(JSON.parse((await status('--json')).out)).toMatchObject({
      running: false,
      queues: { messages_pending: 1, approvals_pending: 0 },
    })
  })
})
