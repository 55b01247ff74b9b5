/** Where the daemon of a run keeps everything: its data directory, and a database server where the run uses one. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Place {
  readonly dataDir: string
  /** The URL of the PostgreSQL. Undefined: the embedded database in the data directory. */
  readonly database: string | undefined
}

/** Makes the data directory, with the configuration. */
export function makePlace(dir: string, config: string, database: string | undefined): Place {
  const dataDir = join(dir, 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const store = database === undefined ? '' : `\n\n[store]\nbackend = "postgres"\nurl = "${database}"\n`
  writeFileSync(join(dataDir, 'config.toml'), config + store, { mode: 0o600 })
  return { dataDir, database }
}
