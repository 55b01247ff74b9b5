/** The configuration that all nodes of a cluster share, as numbered versions of one text. */
import { createHash } from 'node:crypto'
import { every } from '@sluice/kit'
import type { ConfigVersion, Logger, SharedConfig } from '@sluice/sdk'
import { sql } from './connection.ts'
import type { Db } from './db.ts'
import type { Leases } from './leases.ts'
import type { Notices } from './notices.ts'

const LOOK_EVERY_MS = 1000
const VERSIONS_KEPT = 50

const READ = `
  SELECT version, text, by_whom AS by, extract(epoch FROM at)::float8 * 1000 AS "atMs" FROM config ORDER BY version DESC LIMIT 1`
const VERSION = 'SELECT max(version) AS version FROM config'
// Of two processes that replace the same version, the primary key lets one pass.
const REPLACE = `
  INSERT INTO config (version, text, hash, by_whom)
  SELECT $2::bigint + 1, $1, $3, $4 WHERE coalesce((SELECT max(version) FROM config), 0) = $2::bigint
  ON CONFLICT (version) DO NOTHING RETURNING version, text, by_whom AS by, extract(epoch FROM at)::float8 * 1000 AS "atMs"`
const FORGET = 'DELETE FROM config WHERE version <= $1'
const REPORT = 'UPDATE processes SET config_version = $2 WHERE id = $1'

export interface SharedConfigOptions {
  readonly db: Db
  readonly process: string
  readonly leases: Leases
  readonly notices: Notices
  readonly log: Logger
}

export function createSharedConfig({ db, process, leases, notices, log }: SharedConfigOptions): SharedConfig {
  const read = (): Promise<ConfigVersion | undefined> => db.get<ConfigVersion>(READ)
  return {
    read,
    async replace(text, expected, by) {
      const hash = createHash('sha256').update(text).digest('hex')
      const [stored] = await db.writer.write<ConfigVersion>(sql(REPLACE, text, expected, hash, by))
      if (!stored) return undefined
      await db.all('SELECT pg_notify($1, $2)', notices.channel, JSON.stringify({ what: 'config', epochs: [] })).catch(() => undefined)
      await db.writer.write(sql(FORGET, stored.version - VERSIONS_KEPT)).catch(() => undefined)
      return stored
    },
    watch(changed, seen, signal) {
      let known = seen
      let looking: Promise<void> | undefined
      const look = async (): Promise<void> => {
        const newest = (await db.get<{ version: number | null }>(VERSION))?.version ?? 0
        const config = newest > known ? await read() : undefined
        if (!config || config.version <= known || signal.aborted) return
        known = config.version
        changed(config)
      }
      const lookOnce = (): Promise<void> => {
        looking ??= look()
          .catch((error: unknown) => {
            if (!signal.aborted) log.warn('the configuration of the cluster cannot be read now', { error })
          })
          .finally(() => {
            looking = undefined
          })
        return looking
      }
      const forget = notices.on('config', () => void lookOnce())
      signal.addEventListener('abort', forget, { once: true })
      void every(db.clock, LOOK_EVERY_MS, signal, lookOnce)
    },
    async report(version) {
      // The row of this process is there from its first sign of life on.
      await leases.start()
      await db.all(REPORT, process, version)
    },
  }
}
