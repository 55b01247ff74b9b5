/** A complete daemon that serves passkeys, at its own origin. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { newToken } from '@sluice/runtime'
import { defineFeature, type Role } from '@sluice/sdk'
import feature from '../index.ts'

export interface PasskeyDaemon {
  /** The URL with an IP address, at which browsers do not support passkeys. */
  readonly url: string
  /** The origin with a host name; the value of `rp_origin`. */
  readonly origin: string
  readonly dataDir: string
  /** Reloads the configuration with passkeys enabled or disabled. */
  enable(enabled: boolean): Promise<void>
  /** Pairs a new device and returns its token. */
  pair(role?: Role): Promise<string>
  stop(): Promise<void>
}

const provider = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

const config = (passkeys: string): string => `[provider]\nkind = "offline"\n[log]\nlevel = "error"\n[security.webauthn]\n${passkeys}`

export async function startPasskeys(): Promise<PasskeyDaemon> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-passkeys-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, config(''))
  const features = [provider, feature]
  const daemon = await startDaemon({ features, dataDir, configFile, env: {}, profile: 'test', version: '0', host: '127.0.0.1', port: 0 })
  // The port is known only after the start.
  const origin = `http://localhost:${new URL(daemon.url).port}`
  const enable = async (enabled: boolean): Promise<void> => {
    writeFileSync(configFile, config(`enabled = ${enabled}\nrp_origin = "${origin}"\n`))
    await daemon.reload()
  }
  await enable(true)
  return {
    url: daemon.url,
    origin,
    dataDir,
    enable,
    pair: async (role = 'operator') => (await newToken(daemon.runtime.store, { name: 'laptop', role }, daemon.runtime.clock)).token,
    async stop() {
      await daemon.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
