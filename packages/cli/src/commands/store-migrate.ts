/** `sluice store migrate`: copies everything between the embedded database and PostgreSQL. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { createLogger } from '@sluice/runtime/log'
import { openStoreTools } from '@sluice/runtime/open-backend'
import { AppError, type StoreMove, type StoreMoveProgress } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store/lock-data-dir'
import type { CliContext } from '../context.ts'

/** Not by `URL.parse`, which refuses the list of several hosts. */
const PASSWORDS_IN_URL = [/^[^/]*\/\/[^/@:]*:[^/@]+@/, /[?&]password=/]
const TARGETS = { postgres: 'server', sqlite: 'embedded' } as const

export async function run(context: CliContext): Promise<number> {
  const { out, json, dataDir, options } = context
  const { to, url, restart } = options
  if (to !== 'postgres' && to !== 'sqlite') throw new AppError('invalid_request', 'Say where the data goes: --to postgres or --to sqlite.')
  if (typeof url === 'string' && PASSWORDS_IN_URL.some((pattern) => pattern.test(url)))
    out.warn('Every user of this machine can read the password of --url in the list of processes: set SVC_STORE_URL in place of --url.')
  const log = createLogger({ secrets: () => [], level: 'warn', format: 'text', stream: process.stderr, clock: systemClock })
  const tools = await openStoreTools({ ...context, log }, typeof url === 'string' ? url : undefined)
  if (!tools.backend.move) throw new AppError('not_compiled', 'This build cannot move the data.')
  const lock = lockDataDir(dataDir)
  try {
    const startedAt = new Date().toISOString()
    const moved = await tools.backend.move({
      ...tools.options,
      to: TARGETS[to],
      restart: restart === true,
      onProgress: showProgress(context),
      signal: context.interrupted(),
    })
    out.progress('')
    const receipt = { ...receiptOf(to, startedAt, moved), cluster_config: keepClusterConfig(dataDir, moved) }
    const file = join(dataDir, `store-migrated-${receipt.finished_at.replace(/[-:.]/g, '')}.json`)
    writeFileSync(file, `${JSON.stringify(receipt, null, 2)}\n`, { mode: 0o600 })
    if (json) out.json({ ...receipt, receipt: file, next: nextStep(to, url !== undefined) })
    else print(context, { to, moved, receipt: file, clusterConfig: receipt.cluster_config?.file })
    return 0
  } finally {
    lock.release()
  }
}

/** Writes the configuration that the nodes shared next to the one of this node, which it does not replace. */
function keepClusterConfig(dataDir: string, { clusterConfig }: StoreMove): { version: number; file: string } | null {
  if (!clusterConfig) return null
  const { version, text } = clusterConfig
  const file = join(dataDir, `config-of-cluster-${version}.toml`)
  writeFileSync(file, text, { mode: 0o600 })
  return { version, file }
}

const receiptOf = (
  to: string,
  startedAt: string,
  { tables, secrets, unreadableSecrets, auditRecords, auditFault, resumedRows }: StoreMove,
) => ({
  to,
  started_at: startedAt,
  finished_at: new Date().toISOString(),
  rows: tables.reduce((sum, { rows }) => sum + rows, 0),
  resumed_rows: resumedRows,
  tables,
  secrets,
  unreadable_secrets: unreadableSecrets,
  audit_records: auditRecords,
  audit_fault: auditFault,
})

const nextStep = (to: string, isGiven: boolean): string =>
  to === 'postgres'
    ? `set [store] backend = "postgres"${isGiven ? ', and [store] url or SVC_STORE_URL,' : ''} and start the daemon`
    : 'set [store] backend = "sqlite" and start the daemon'

interface Printed {
  readonly to: 'postgres' | 'sqlite'
  readonly moved: StoreMove
  readonly receipt: string
  readonly clusterConfig: string | undefined
}

function print({ out }: CliContext, { to, moved: { tables, ...moved }, receipt, clusterConfig }: Printed): void {
  const warn = (text: string): void => out.warn(`${out.style('yellow', 'warning')}: ${text}`)
  out.table(
    ['table', 'rows'],
    tables.filter(({ rows }) => rows > 0).map(({ name, rows }) => [name, String(rows)]),
  )
  out.print(
    `copied and compared: ${tables.reduce((sum, { rows }) => sum + rows, 0)} rows, ${moved.secrets} secrets, ${moved.auditRecords} audit records`,
  )
  if (moved.auditFault !== null) warn(`the audit log was broken before the copy, too: ${moved.auditFault}`)
  for (const path of moved.unreadableSecrets) warn(`${path} cannot be decrypted with secret.key of this data directory; set it again`)
  if (clusterConfig !== undefined)
    warn(
      `the configuration that the nodes shared is in ${clusterConfig}; copy its sections to config.toml, which the daemon reads without [cluster]`,
    )
  out.print(`receipt: ${receipt}`)
  out.print(`next: ${nextStep(to, true)}; never start a daemon on the old database again, which still has the unfinished work`)
}

/** Shows the progress in one line of the terminal. */
function showProgress({ out, json }: CliContext): (progress: StoreMoveProgress) => void {
  let shown = ''
  return ({ phase, table, rows, rowsTotal }) => {
    if (json) return
    const line = `${phase === 'copy' ? 'copying' : 'comparing'} ${table} ${Math.floor((100 * rows) / Math.max(1, rowsTotal))}%`
    if (line !== shown) out.progress(line)
    shown = line
  }
}
