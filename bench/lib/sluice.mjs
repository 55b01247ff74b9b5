// The programs under measurement: Sluice as built into dist/, and the bare Node servers beside it.
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runNode, startServer } from './processes.mjs'

const ROOT = resolve(import.meta.dirname, '../..')

export const bareServer = (name) => join(ROOT, 'bench', 'servers', `${name}.mjs`)
export const loadProgram = (name) => join(ROOT, 'bench', 'load', `${name}.mjs`)
export const distFolder = (profile) => join(ROOT, 'dist', profile)

export function sluiceBundle(profile) {
  const file = join(distFolder(profile), 'sluice.mjs')
  if (!existsSync(file)) throw new Error(`dist/${profile}/sluice.mjs is not there: run 'pnpm build:${profile}'`)
  return file
}

export const bundleReport = (profile) => JSON.parse(readFileSync(join(distFolder(profile), 'bundle-report.json'), 'utf8'))

export const newDataDir = (scratch) => mkdtempSync(join(scratch, 'data-'))

/** Loads limits out of the way, everything that keeps data safe as it is by default. */
export const LOAD_CONFIG = `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "offline"

[log]
level = "warn"
`

export const writeConfig = (dataDir, config) => writeFileSync(join(dataDir, 'config.toml'), config)

/** A profile on a new data directory, paired: a server with a `token` that opens it. */
export async function startSluice({ scratch, config = LOAD_CONFIG, dataDir = newDataDir(scratch), nodeArgs = [], profile = 'minimal' }) {
  const bundle = sluiceBundle(profile)
  writeConfig(dataDir, config)
  const token = await runNode({ scratch, args: [bundle, 'pair', 'token', '--name', 'bench', '--data-dir', dataDir] })
  const server = await startServer({ scratch, args: [...nodeArgs, bundle, 'daemon', '--data-dir', dataDir, '--port', '0'] })
  return { ...server, token }
}

/** A bare server; `token` only keeps the requests alike. */
export async function startBare({ scratch, name, args = [] }) {
  const server = await startServer({ scratch, args: [bareServer(name), ...args] })
  return { ...server, token: 'x'.repeat(64) }
}

/** One run of a load program, in a process of its own. */
export async function runLoad({ scratch, name, job }) {
  return JSON.parse(await runNode({ scratch, args: [loadProgram(name), JSON.stringify(job)] }))
}
