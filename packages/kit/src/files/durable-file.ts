/** Writes small files so that a crash or a power cut leaves either the old content or the new one. */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Replaces a file durably; only its owner can read it. Throws errors of the file system. */
export function replaceDurably(file: string, text: string): void {
  const part = `${file}.${randomBytes(4).toString('hex')}.part`
  try {
    createDurably(part, text)
    renameSync(part, file)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  syncFolder(dirname(file))
}

/**
 * Makes a file that only its owner can read, with its content on stable storage. Its name survives a power cut only after
 * `syncFolder`. Throws `EEXIST` if there is a file, and other errors of the file system.
 */
export function createDurably(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Makes the entries of a folder durable. Some systems do not allow opening or syncing a folder; that is ignored. */
export function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && /^(?:EISDIR|EPERM|EACCES|EINVAL)$/.test(String(error.code)))) throw error
  }
}
