/** The key file that encrypted values depend on. */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, sha256Hex } from '@sluice/sdk'

export interface SecretKey {
  /** Names the key without telling it. */
  readonly id: string
  readonly bytes: Buffer
}

/** Undefined if there is no file. Throws `config_invalid` for one that others may read or that holds no key. */
export function readSecretKey(file: string): SecretKey | undefined {
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw new AppError('config_invalid', `The key file ${file} cannot be read.`, { cause: error })
  }
  try {
    // Windows has no such mode bits; there the folder's access list guards the file.
    if (process.platform !== 'win32' && (fstatSync(descriptor).mode & 0o077) !== 0) {
      throw new AppError('config_invalid', `The key file ${file} is open to other users. Run: chmod 600 ${file}`)
    }
    const text = readFileSync(descriptor, 'utf8').trim()
    if (!/^[0-9a-f]{64}$/.test(text)) throw new AppError('config_invalid', `The key file ${file} holds no key. Restore it from a backup.`)
    const bytes = Buffer.from(text, 'hex')
    return { id: sha256Hex(bytes).slice(0, 8), bytes }
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Makes a key and puts it on stable storage before anything can be encrypted with it. Never replaces a file: when two
 * processes do this at once, both get the key of the one that came first.
 */
export function createSecretKey(file: string): SecretKey {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    place(`${randomBytes(32).toString('hex')}\n`, file)
    syncFolder(dirname(file))
  } catch (error) {
    throw new AppError('unavailable', `The key file ${file} cannot be made.`, { cause: error })
  }
  const key = readSecretKey(file)
  if (!key) throw new AppError('unavailable', `The key file ${file} has gone again.`)
  return key
}

/** The file appears with its whole content, so that nobody reads half a key; one that is there already stays. */
function place(text: string, file: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    writeDurably(draft, text)
    linkSync(draft, file)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

function writeDurably(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600)
  try {
    writeSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** A new name in a folder is durable once the folder is. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code
