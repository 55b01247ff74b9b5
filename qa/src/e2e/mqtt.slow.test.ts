/** Procedures that messages of a real MQTT broker start. See docs/contract.md#procedures. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, startDaemon } from '@sluice/daemon'
import type { SopRun } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { always } from '../../../profiles/always.ts'
import type { DebianProgram } from '../debian-program.ts'
import { findMosquitto, type Mosquitto, startMosquitto } from '../mosquitto.ts'
import { mqttPublish } from '../mqtt-publish.ts'

const program = await findMosquitto()
const found = 'missing' in program ? undefined : program
const why = 'missing' in program ? ` (skipped: ${program.missing})` : ''

const SOP_TOML = `
[sop]
name = "watch"
description = "Waits for a person"
version = "1.0.0"
execution_mode = "deterministic"
max_concurrent = 10
[[triggers]]
type = "mqtt"
topic = "plant/+/temperature"
condition = "$.celsius > 80"
`
const SOP_MD = '## Steps\n\n1. **Look** - A person has to look.\n   - kind: checkpoint\n'

describe.skipIf(!found)(`a daemon with a real broker${why}`, () => {
  let dataDir: string
  let broker: Mosquitto
  let daemon: Daemon | undefined

  beforeEach(async () => {
    broker = await startMosquitto(found as DebianProgram, { lines: ['log_type all'] })
    dataDir = mkdtempSync(join(tmpdir(), 'mqtt-daemon-'))
    const folder = join(dataDir, 'sops/watch')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SOP.toml'), SOP_TOML)
    writeFileSync(join(folder, 'SOP.md'), SOP_MD)
    const config = `[log]\nlevel = "error"\n[provider]\nkind = "offline"\n[channels_config.mqtt]\nenabled = true\nbroker_url = "${broker.url}"\n`
    writeFileSync(join(dataDir, 'config.toml'), config, { mode: 0o600 })
  })
  afterEach(async () => {
    await stop()
    await broker.dispose()
    rmSync(dataDir, { recursive: true })
  })

  const start = async (): Promise<void> => {
    const configFile = join(dataDir, 'config.toml')
    daemon = await startDaemon({ features: always, dataDir, configFile, env: {}, profile: 'test', version: '0', port: 0 })
  }
  const stop = async (): Promise<void> => {
    await daemon?.stop()
    daemon = undefined
  }
  const runs = async (): Promise<readonly SopRun[]> => (await daemon?.runtime.store.sops.runs({ limit: 100 })) ?? []
  const payloads = async () => (await runs()).map(({ event }) => event.payload).toSorted()
  const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 10 })

  it('starts a procedure once for each message, also for those sent while the daemon was down', async () => {
    await start()
    await soon(() => expect(broker.log()).toContain('Received SUBSCRIBE'))
    await mqttPublish(broker.port, 'plant/pump/temperature', '{"celsius":91}')
    await mqttPublish(broker.port, 'plant/pump/temperature', '{"celsius":20}')
    await mqttPublish(broker.port, 'plant/pump/temperature', '{"celsius":92}')
    await soon(async () => expect(await payloads()).toEqual(['{"celsius":91}', '{"celsius":92}']))
    expect(await runs()).toMatchObject(
      Array(2).fill({ sop: 'watch', status: 'paused_checkpoint', event: { source: 'mqtt', by: 'broker' } }),
    )
    await stop()
    await mqttPublish(broker.port, 'plant/fan/temperature', '{"celsius":93}')
    await start()
    await soon(async () => expect(await payloads()).toEqual(['{"celsius":91}', '{"celsius":92}', '{"celsius":93}']))
  })
})
