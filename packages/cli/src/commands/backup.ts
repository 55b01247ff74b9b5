/** `sluice backup`: writes a backup in this process, next to a daemon or without one, so that no request waits for it. */
import { constants, setPriority } from 'node:os'
import { resolve } from 'node:path'
import { readRecord, writeRecord } from '@sluice/backup'
import { backupFolder, dropOldBackups, newBackupFile } from '@sluice/backup/folder'
import { type Backup, type BackupOptions, type Progress, writeBackup } from '@sluice/backup/write'
import { type BackupConfig, backupSection, readConfig, storeSection } from '@sluice/config'
import { AppError, errorText } from '@sluice/sdk'
import { shareDataDir } from '@sluice/store/lock-data-dir'
import type { CliContext } from '../context.ts'
import { megabytes } from '../megabytes.ts'
import { givenPassphrase, passphraseMissing, typedPassphrase } from '../passphrase.ts'

type Target = Pick<BackupOptions, 'file' | 'withSecrets' | 'passphrase'> & { readonly folder?: string; readonly keep?: number }

export async function run(context: CliContext): Promise<number> {
  const { out, json, dataDir } = context
  await requireEmbedded(context)
  const { folder, keep = 0, ...target } = await targetOf(context)
  try {
    const isPaced = daemonRuns(dataDir)
    // The daemon goes first wherever both want the processor.
    if (isPaced) setPriority(constants.priority.PRIORITY_LOW)
    const backup = await writeBackup({
      ...context,
      ...target,
      isPaced,
      except: folder === undefined ? [] : [folder],
      signal: context.interrupted(),
      onProgress: showProgress(context),
    })
    const deleted = folder === undefined ? [] : dropOldBackups(folder, keep)
    record(context, { last: lastOf(backup), failure: null })
    if (json) out.json({ ...shown(backup), deleted })
    else printBackup(context, backup, deleted)
    return 0
  } catch (error) {
    // A name that is taken is a mistake of the caller, which says nothing about the backups.
    if (!(error instanceof AppError && error.code === 'conflict'))
      record(context, { last: readRecord(dataDir).last, failure: { at: new Date().toISOString(), error: errorText(error) } })
    throw error
  }
}

/** A copy of the data directory without the data would look like a backup. A configuration that cannot be read does not prevent one. */
async function requireEmbedded(context: CliContext): Promise<void> {
  const config = await readConfig(context).catch(() => undefined)
  if (config === undefined || config.core(storeSection).backend === 'sqlite') return
  throw new AppError(
    'invalid_request',
    'The data is in PostgreSQL, which `sluice backup` does not copy. Back up the server with its own tools, such as pg_dump, and copy config.toml and secret.key of the data directory.',
  )
}

/** The file of the arguments with the options, or a new file in the folder of `[backup]` with the settings there. */
async function targetOf(context: CliContext): Promise<Target> {
  const { args, options, dataDir } = context
  const [file] = args
  const withSecrets = options['with-secrets'] === true
  const config: BackupConfig | undefined = file === undefined ? (await readConfig(context)).core(backupSection) : undefined
  const isAsked = options.encrypt === true || options['passphrase-file'] !== undefined
  const configured = config?.passphrase?.reveal()
  const given = isAsked ? (givenPassphrase(context) ?? configured ?? (await typedPassphrase(context, true))) : configured
  if (isAsked && given === undefined) throw passphraseMissing()
  if (file !== undefined) return { file: resolve(checkName(file)), withSecrets, passphrase: given }
  const folder = backupFolder(config ?? { folder: '' }, dataDir)
  return {
    file: newBackupFile(folder, { isEncrypted: given !== undefined, nowMs: Date.now() }),
    folder,
    keep: config?.keep ?? 1,
    withSecrets: withSecrets || config?.with_secrets === true,
    passphrase: given,
  }
}

/** Refuses other names, because `sluice backup check` would write a backup called `check` into the working directory. */
function checkName(file: string): string {
  if (file.endsWith('.tar') || file.endsWith('.age')) return file
  const cure = "; to check a backup, use 'sluice restore --check <file>'"
  throw new AppError('invalid_request', `the name of a backup ends in .tar, or in .tar.age if it is encrypted; '${file}' does not${cure}`)
}

function daemonRuns(dataDir: string): boolean {
  const lock = shareDataDir(dataDir)
  lock?.release()
  return lock === undefined
}

const lastOf = ({ file, createdAtMs, bytes, isEncrypted, withSecrets }: Backup) => ({
  at: new Date(createdAtMs).toISOString(),
  file,
  bytes,
  encrypted: isEncrypted,
  with_secrets: withSecrets,
})

const shown = (backup: Backup) => ({
  ...lastOf(backup),
  files: backup.files,
  left_out: backup.leftOut,
  warnings: backup.warnings,
})

/** A backup is good without its record, such as on a disk that is full. */
function record({ dataDir, out }: CliContext, value: Parameters<typeof writeRecord>[1]): void {
  try {
    writeRecord(dataDir, value)
  } catch (error) {
    out.warn(`the backup is not noted in the data directory: ${errorText(error)}`)
  }
}

function printBackup({ out }: CliContext, backup: Backup, deleted: readonly string[]): void {
  const { file, bytes, files, isEncrypted, withSecrets, leftOut, warnings } = backup
  for (const warning of warnings) out.warn(`${out.style('yellow', 'warning')}: ${warning}`)
  const kind = [isEncrypted ? 'encrypted' : 'not encrypted', withSecrets ? 'with secrets' : 'without secrets'].join(', ')
  out.print(`${file}: ${megabytes(bytes)} MB, ${files} files, verified, ${kind}`)
  if (leftOut.length > 0) out.print(`left out, because they hold secrets in plain text: ${leftOut.join(', ')}`)
  for (const old of deleted) out.print(`deleted ${old}`)
}

/** Shows the progress in one line of the terminal. */
function showProgress({ out, json }: CliContext): (progress: Progress) => void {
  let shownLine = ''
  return ({ phase, bytes, bytesTotal }) => {
    if (json) return
    const isDone = phase === 'verify' && bytes === bytesTotal
    const line = isDone ? '' : `${phase === 'write' ? 'writing' : 'verifying'} ${Math.floor((100 * bytes) / Math.max(1, bytesTotal))}%`
    if (line !== shownLine) out.progress(line)
    shownLine = line
  }
}
