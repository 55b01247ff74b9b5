/** Checks that there is a recent backup, and that no rotation of the key is unfinished. */
import { readRecord } from '@sluice/backup'
import { backupSection, type LoadedConfig, storeSection } from '@sluice/config'
import { secretKeyIds } from '@sluice/store/secret-box'
import { type Check, ok, warn } from './check.ts'

const DAY_MS = 86_400_000
const DAYS_MAX = 8

export function checkBackups(dataDir: string, config: LoadedConfig, nowMs: number): Check {
  if (config.core(storeSection).backend !== 'sqlite')
    return ok('backup', 'the database server has backups of its own; copy config.toml and secret.key as well')
  const { last, failure } = readRecord(dataDir)
  const { schedule } = config.core(backupSection)
  const cure = 'run \'sluice backup\', or set [backup] schedule, such as "0 3 * * *"'
  if (failure) return warn('backup', `the backup of ${failure.at} failed: ${failure.error}`, "repair the cause and run 'sluice backup'")
  if (!last) return schedule === undefined ? warn('backup', 'there is no backup', cure) : ok('backup', 'scheduled; none was due yet')
  const detail = `${last.file} of ${last.at}, ${last.bytes} bytes, verified`
  if (nowMs - Date.parse(last.at) > DAYS_MAX * DAY_MS)
    return warn('backup', `the last backup is more than ${DAYS_MAX} days old: ${detail}`, cure)
  return ok('backup', detail)
}

/** Returns no check if all is well, or if the key file cannot be read, which the configuration reports. */
export function checkRotation(dataDir: string): Check[] {
  try {
    if (secretKeyIds(dataDir).length < 2) return []
  } catch {
    return []
  }
  return [warn('secrets', 'a rotation of the key was interrupted; both keys work', "run 'sluice secrets rotate' again")]
}
