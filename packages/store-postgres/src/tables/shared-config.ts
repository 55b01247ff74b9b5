/** The configuration that all nodes of a cluster share, as numbered versions of one text. */
import { createHash } from 'node:crypto'
import { every } from '@sluice/kit'
import { AppError, type ConfigVersion, type Logger, type SharedConfig } from '@sluice/sdk'
import type { Leases } from '../cluster/leases.ts'
import type { Notices } from '../cluster/notices.ts'
import { type Row, sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { newestVersion } from '../schema/signed-tables.ts'

const LOOK_EVERY_MS = 1000
const VERSIONS_KEPT = 50

const COLUMNS = 'version, text, by_whom, hmac, extract(epoch FROM at)::float8 * 1000 AS "atMs"'
const READ = `SELECT ${COLUMNS} FROM config ORDER BY version DESC LIMIT 1`
// Of two processes that replace the same version, the primary key lets one pass.
const REPLACE = `
  INSERT INTO config (version, text, hash, by_whom, hmac)
  SELECT $2::bigint + 1, $1, $3, $4, $5 WHERE coalesce((SELECT max(version) FROM config), 0) = $2::bigint
  ON CONFLICT (version) DO NOTHING RETURNING ${COLUMNS}`
const FORGET = 'DELETE FROM config WHERE version <= $1'
const REPORT = 'UPDATE processes SET config_version = $2 WHERE id = $1'

export interface SharedConfigOptions {
  readonly db: Database
  readonly process: string
  readonly leases: Leases
  readonly notices: Notices
  readonly log: Logger
}

interface ConfigRow extends Row {
  readonly version: number
  readonly text: string
  readonly by_whom: string
  readonly atMs: number
}

export function createSharedConfig({ db, process, leases, notices, log }: SharedConfigOptions): SharedConfig {
  const { signatures } = db
  const accepted = (row: ConfigRow): ConfigVersion => {
    signatures.require('config', row)
    signatures.requireNewest(row.version)
    return { version: row.version, text: row.text, by: row.by_whom, atMs: row.atMs }
  }
  const read = async (): Promise<ConfigVersion | undefined> => {
    const row = await db.get<ConfigRow>(READ)
    if (!row) signatures.requireNewest(0)
    return row && accepted(row)
  }
  return {
    read,
    async replace(text, expected, by) {
      const hash = createHash('sha256').update(text).digest('hex')
      const hmac = signatures.of('config', { version: expected + 1, text, by_whom: by })
      const [row] = await db.writer.write<ConfigRow>(sql(REPLACE, text, expected, hash, by, hmac))
      if (!row) return undefined
      const stored = accepted(row)
      await db.all('SELECT pg_notify($1, $2)', notices.channel, JSON.stringify({ what: 'config', epochs: [] })).catch(() => undefined)
      await db.writer.write(sql(FORGET, stored.version - VERSIONS_KEPT)).catch(() => undefined)
      return stored
    },
    watch(changed, seen, signal) {
      let known = seen
      let looking: Promise<void> | undefined
      let refused: string | undefined
      const look = async (): Promise<void> => {
        const newest = await newestVersion(db.all)
        const config = newest > known ? await read() : undefined
        if (!config || config.version <= known || signal.aborted) return
        known = config.version
        changed(config)
      }
      const lookOnce = (): Promise<void> => {
        looking ??= look()
          .catch((error: unknown) => {
            if (signal.aborted) return
            if (!(error instanceof AppError && error.code === 'config_invalid'))
              return log.warn('the configuration of the cluster cannot be read now', { error })
            // The row stays as it is until an operator looks at it.
            if (refused !== error.message) log.error('the newest configuration of the cluster is not taken over', { reason: error.message })
            refused = error.message
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
