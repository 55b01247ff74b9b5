// Returns the OpenAPI document that a daemon serves.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'

/** Starts a daemon with these features and this configuration, and resolves to its OpenAPI document. */
export async function documentOf(features, config = '') {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-docs-'))
  writeFileSync(join(dataDir, 'config.toml'), `[gateway]\nrequire_pairing = false\n[log]\nlevel = "error"\n${config}`)
  const daemon = await startDaemon({
    dataDir,
    configFile: join(dataDir, 'config.toml'),
    env: {},
    features,
    profile: 'docs',
    version: '0.0.0',
    port: 0,
  })
  try {
    return await (await fetch(`${daemon.url}/api/openapi.json`)).json()
  } finally {
    await daemon.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
