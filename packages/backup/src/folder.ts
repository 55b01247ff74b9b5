/** The folder of `[backup]`: names of backups, and how many of them stay. */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { BackupConfig } from '@sluice/config'
import { removeStaleParts } from './part-file.ts'

/** Names sort by time. */
const NAME = /^sluice-\d{8}T\d{9}Z\.tar(?:\.age)?$/

/** A backup in the folder. */
export interface FolderBackup {
  readonly file: string
  readonly bytes: number
}

/** Returns the absolute path of the folder. */
export const backupFolder = ({ folder }: Pick<BackupConfig, 'folder'>, dataDir: string): string => resolve(dataDir, folder)

/** Makes the folder if it is missing, and returns the path of a new backup in it. */
export function newBackupFile(folder: string, { isEncrypted, nowMs }: { readonly isEncrypted: boolean; readonly nowMs: number }): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeStaleParts(folder, 'sluice-')
  const time = new Date(nowMs).toISOString().replace(/[-:.]/g, '')
  return join(folder, `sluice-${time}.tar${isEncrypted ? '.age' : ''}`)
}

/** Lists the complete backups in the folder, newest first; empty without the folder. */
export function listBackups(folder: string): readonly FolderBackup[] {
  const names = statSync(folder, { throwIfNoEntry: false }) ? readdirSync(folder).filter((name) => NAME.test(name)) : []
  return names
    .toSorted()
    .reverse()
    .map((name) => join(folder, name))
    .map((file) => ({ file, bytes: statSync(file, { throwIfNoEntry: false })?.size ?? 0 }))
}

/** Deletes the oldest backups until at most `keep` are left. Returns the deleted files. */
export function dropOldBackups(folder: string, keep: number): readonly string[] {
  const old = listBackups(folder).slice(keep)
  for (const { file } of old) rmSync(file, { force: true })
  return old.map(({ file }) => file)
}
