/** Writes small files so that a crash leaves either the old content or the new one. */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Replaces the file durably; only its owner can read it. Throws errors of the file system. */
export function writeDurably(file: string, text: string): void {
  const part = `${file}.${randomBytes(4).toString('hex')}.part`
  try {
    const descriptor = openSync(part, 'wx', 0o600)
    try {
      writeFileSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(part, file)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  syncFolder(dirname(file))
}

/** Makes the entries of a folder durable. Windows has no such call. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
