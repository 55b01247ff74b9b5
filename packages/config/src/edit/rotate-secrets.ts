/** Encrypts the secrets of the configuration, and the secrets of features in the database, with a new key. */
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import { beginRotation, endRotation, type Reencrypted, reencryptRows } from '@sluice/store/secret-rotation'
import type { ConfigSource } from '../read/read-config.ts'
import { type KeyPath, schemaPath } from '../toml/key-path.ts'
import { parseToml, withoutMark } from '../toml/parse-toml.ts'
import { saveConfig } from './save-config.ts'
import { undisturbed } from './set-config.ts'

/** Longer than a process takes to store a value that it encrypted before it saw the new key. */
const SETTLE_MS = 2000

export interface RotateOptions extends Pick<ConfigSource, 'configFile' | 'dataDir' | 'shared'> {
  /** For tests: the time between the first pass and the last one. */
  readonly settleMs?: number
  /**
   * Encrypts the secrets of features in a database server. Absent: they are in the embedded database. Rejects if that cannot be done now;
   * with null it only checks that.
   */
  readonly reencryptServer?: ((oldId: string | null) => Promise<Reencrypted>) | undefined
}

/**
 * Resolves once no secret needs the old key and the key file has only the new one. May run while a daemon uses the data directory, and
 * again after it was interrupted anywhere. Throws `not_found` without a key file.
 */
export async function rotateSecrets(options: RotateOptions): Promise<Reencrypted> {
  const { dataDir, settleMs = SETTLE_MS } = options
  // Daemons encrypt with the new key as soon as it is in the file.
  await options.reencryptServer?.(null)
  const oldId = beginRotation(dataDir)
  const first = await reencryptAll(options, oldId)
  await sleep(settleMs)
  let changed = first.changed
  for (;;) {
    const pass = await reencryptAll(options, oldId)
    changed += pass.changed
    if (pass.changed > 0) continue
    endRotation(dataDir)
    return { changed, unreadable: pass.unreadable }
  }
}

async function reencryptAll(options: RotateOptions, oldId: string): Promise<Reencrypted> {
  const rows = options.reencryptServer ? await options.reencryptServer(oldId) : reencryptRows(options.dataDir, oldId)
  const file = await undisturbed(() => reencryptFile(options, oldId))
  const shared = await undisturbed(() => reencryptShared(options, oldId))
  const all = [rows, file, shared]
  return { changed: all.reduce((sum, { changed }) => sum + changed, 0), unreadable: all.flatMap(({ unreadable }) => unreadable) }
}

async function reencryptFile({ configFile: file, dataDir }: RotateOptions, oldId: string): Promise<Reencrypted> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return { changed: 0, unreadable: [] }
  const { next, ...done } = await reencryptText(text, { file, dataDir, oldId })
  if (next !== text) await saveConfig({ file, text: next, expected: text })
  return done
}

/** The configuration of a cluster. */
async function reencryptShared({ configFile: file, dataDir, shared }: RotateOptions, oldId: string): Promise<Reencrypted> {
  const config = await shared?.read()
  if (!shared || !config) return { changed: 0, unreadable: [] }
  const { next, ...done } = await reencryptText(config.text, { file, dataDir, oldId })
  if (next !== config.text && !(await shared.replace(next, config.version, hostname())))
    throw new AppError('conflict', 'The configuration of the cluster has changed meanwhile')
  return done
}

/** Replaces the encrypted texts themselves, so that everything else stays as it is. */
async function reencryptText(
  text: string,
  { file, dataDir, oldId }: { readonly file: string; readonly dataDir: string; readonly oldId: string },
): Promise<Reencrypted & { readonly next: string }> {
  const prefix = `enc:1:${oldId}:`
  const unreadable: string[] = []
  let changed = 0
  let next = text
  if (!text.includes(prefix)) return { changed, unreadable, next }
  const box = openSecretBox(dataDir)
  for (const [path, value] of textsIn(await parseToml(withoutMark(text), file), [])) {
    if (!value.startsWith(prefix)) continue
    const aad = schemaPath(path)
    try {
      const fresh = box.encrypt(box.decrypt(value, aad), aad)
      // Each encrypted text is unique, because its nonce is random.
      next = next.replace(value, fresh)
      changed++
    } catch {
      unreadable.push(aad)
    }
  }
  return { changed, unreadable, next }
}

function* textsIn(value: unknown, path: KeyPath): Iterable<readonly [path: KeyPath, text: string]> {
  if (typeof value === 'string') yield [path, value]
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* textsIn(item, [...path, index])
  else if (typeof value === 'object' && value !== null && !(value instanceof Date))
    for (const [name, child] of Object.entries(value)) yield* textsIn(child, [...path, name])
}
