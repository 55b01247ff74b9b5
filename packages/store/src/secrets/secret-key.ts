/** The key file for encrypted values. */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, linkSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { createDurably, replaceDurably, syncFolder } from '@sluice/kit'
import { AppError, sha256Hex } from '@sluice/sdk'

export interface SecretKey {
  /** Identifies the key without revealing it. */
  readonly id: string
  readonly bytes: Buffer
}

/**
 * Returns the key that encrypts and then, while a rotation is under way, the previous one, which only decrypts; empty when there is no
 * file. Throws `config_invalid` for a file that other users may read or that holds no key.
 */
export function readSecretKeys(file: string): readonly SecretKey[] {
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw new AppError('config_invalid', `The key file ${file} cannot be read.`, { cause: error })
  }
  try {
    // Windows has no mode bits. The access list of the folder protects the file there.
    if (process.platform !== 'win32' && (fstatSync(descriptor).mode & 0o077) !== 0) {
      throw new AppError('config_invalid', `The key file ${file} is readable for other users. Run: chmod 600 ${file}`)
    }
    const text = readFileSync(descriptor, 'utf8').trim()
    if (!/^[0-9a-f]{64}(?:\n[0-9a-f]{64})?$/.test(text))
      throw new AppError('config_invalid', `The key file ${file} holds no key. Restore it from a backup.`)
    return text.split('\n').map((line) => {
      const bytes = Buffer.from(line, 'hex')
      return { id: sha256Hex(bytes).slice(0, 8), bytes }
    })
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Creates a key and syncs it to stable storage before a value can be encrypted with it. Never replaces a file: when two processes
 * create a key at the same time, both get the key of the first. Throws `unavailable` when the file cannot be created.
 */
export function createSecretKey(file: string): SecretKey {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    placeFile(`${randomBytes(32).toString('hex')}\n`, file)
    syncFolder(dirname(file))
  } catch (error) {
    throw new AppError('unavailable', `The key file ${file} cannot be created.`, { cause: error })
  }
  const [key] = readSecretKeys(file)
  if (!key) throw new AppError('unavailable', `The key file ${file} was deleted right after it was created.`)
  return key
}

/** Replaces the keys of a file durably and at once: a crash leaves the old file or the new one. Throws `unavailable`. */
export function replaceSecretKeys(file: string, keys: readonly Pick<SecretKey, 'bytes'>[]): void {
  try {
    replaceDurably(file, `${keys.map(({ bytes }) => bytes.toString('hex')).join('\n')}\n`)
  } catch (error) {
    throw new AppError('unavailable', `The key file ${file} cannot be replaced.`, { cause: error })
  }
}

/** Creates the file with its whole content at once, so that another process never reads half a key. Keeps an existing file. */
function placeFile(text: string, file: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    createDurably(draft, text)
    linkSync(draft, file)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code
