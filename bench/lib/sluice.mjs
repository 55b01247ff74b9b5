// The measured programs: the bundles of Sluice in dist/, and the bare Node servers.
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runNode, startServer } from './processes.mjs'

const ROOT = resolve(import.meta.dirname, '../..')

export const bareServer = (name) => join(ROOT, 'bench', 'servers', `${name}.mjs`)
export const loadProgram = (name) => join(ROOT, 'bench', 'load', `${name}.mjs`)
export const distFolder = (profile) => join(ROOT, 'dist', profile)

export function sluiceBundle(profile) {
  const file = join(distFolder(profile), 'sluice.mjs')
  if (!existsSync(file)) throw new Error(`dist/${profile}/sluice.mjs does not exist: run 'npm run build:${profile}'`)
  return file
}

export const bundleReport = (profile) => JSON.parse(readFileSync(join(distFolder(profile), 'bundle-report.json'), 'utf8'))

export const newDataDir = (scratch) => mkdtempSync(join(scratch, 'data-'))

/** Switches off the rate limit; every setting that protects data has its default. */
export const LOAD_CONFIG = `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "offline"

[log]
level = "warn"
`

export const writeConfig = (dataDir, config) => writeFileSync(join(dataDir, 'config.toml'), config)

/** Starts a bundle, that of a profile unless one is given, on a new data directory unless one is given; `token` is the token of a paired device. */
export async function startSluice({
  scratch,
  config = LOAD_CONFIG,
  dataDir = newDataDir(scratch),
  nodeArgs = [],
  profile = 'minimal',
  bundle = sluiceBundle(profile),
  cgroup,
}) {
  writeConfig(dataDir, config)
  const token = await runNode({ scratch, args: [bundle, 'pair', 'token', '--name', 'bench', '--data-dir', dataDir] })
  const server = await startServer({ scratch, args: [...nodeArgs, bundle, 'daemon', '--data-dir', dataDir, '--port', '0'], cgroup })
  return { ...server, token }
}

/** Starts a bare server. It ignores `token`, which keeps the requests the same as those to Sluice. */
export async function startBare({ scratch, name, args = [] }) {
  const server = await startServer({ scratch, args: [bareServer(name), ...args] })
  return { ...server, token: 'x'.repeat(64) }
}

/** Runs a load program once, in its own process. */
export async function runLoad({ scratch, name, job }) {
  return JSON.parse(await runNode({ scratch, args: [loadProgram(name), JSON.stringify(job)] }))
}
