/** A bundle loads the code of a channel when the configuration names the channel, also while the daemon runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { signed, WEBHOOK_SECRET } from '../../../packages/channel-webhook/src/testing/index.ts'
import { bundle, eventually, type RunningDaemon, run, scratch, startDaemon } from '../daemons/bundle.ts'

const OFFLINE = '[provider]\nkind = "offline"\n\n[gateway]\nrequire_pairing = false\n'
const CHANNEL = `\n[channels_config.webhook]\nsend_url = "http://127.0.0.1:9/replies"\nallowed_senders = ["*"]\nsecret = "${WEBHOOK_SECRET}"\n`

let daemon: RunningDaemon | undefined
let folder: ReturnType<typeof scratch>
afterEach(async () => {
  daemon?.kill('SIGKILL')
  await daemon?.exited
  folder.dispose()
})

interface Shown {
  readonly feature: string
  readonly state: string
  readonly reason: string | null
}

const stateOf = async (url: string): Promise<Shown | undefined> => {
  const { features } = (await (await fetch(`${url}/api/features`)).json()) as { readonly features: readonly Shown[] }
  return features.find(({ feature }) => feature === 'channel-webhook')
}

const postMessage = (url: string): Promise<Response> => {
  const body = JSON.stringify({ id: 'm-1', sender: 'ada', content: 'hello' })
  const headers = { 'content-type': 'application/json', ...signed(body, { id: 'm-1', atMs: Date.now() }) }
  return fetch(`${url}/webhook/channel`, { method: 'POST', headers, body })
}

test('the start loads no code of a channel', () => {
  folder = scratch()
  const { packages } = JSON.parse(readFileSync(join(dirname(bundle('minimal')), 'bundle-report.json'), 'utf8')) as {
    readonly packages: readonly { readonly package: string; readonly startBytes: number }[]
  }
  const channels = packages.filter(({ package: name }) => name.startsWith('@sluice/channel-'))
  expect(channels.length).toBeGreaterThan(0)
  expect(channels.filter(({ startBytes }) => startBytes > 0)).toEqual([])
})

test('a running daemon gains a channel that its configuration names, and loses it again', async () => {
  folder = scratch(OFFLINE)
  daemon = await startDaemon('minimal', folder.dir)
  const { url, kill } = daemon
  expect(await stateOf(url)).toMatchObject({ state: 'unconfigured', reason: '[channels_config.webhook] is not configured' })
  expect((await postMessage(url)).status).toBe(404)
  writeFileSync(join(folder.dir, 'config.toml'), OFFLINE + CHANNEL)
  kill('SIGHUP')
  await eventually(
    () => stateOf(url),
    (shown) => shown?.state === 'ready',
  )
  expect((await postMessage(url)).status).toBe(200)
  writeFileSync(join(folder.dir, 'config.toml'), OFFLINE)
  kill('SIGHUP')
  await eventually(
    () => stateOf(url),
    (shown) => shown?.state === 'unconfigured',
  )
  expect((await postMessage(url)).status).toBe(404)
})

test('commands know the keys of channels that nothing names', async () => {
  folder = scratch(OFFLINE)
  const { dir } = folder
  const shown = JSON.parse((await run('minimal', ['features', '--json', '--data-dir', dir])).stdout) as readonly Shown[]
  expect(shown.find(({ feature }) => feature === 'channel-webhook')?.reason).toContain('it needs')
  expect((await run('minimal', ['config', 'schema', '--data-dir', dir])).stdout).toContain('send_url')
  const wrong = await run('minimal', ['config', 'set', 'channels_config.webhook.send_urll', 'x', '--data-dir', dir])
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('send_url') })
})
