/**
 * Takes over a device that another program has linked: `session_path` is then the folder that `useMultiFileAuthState` of baileys wrote.
 * Keys of groups are not taken over, because their file names are ambiguous: the devices of the members send them again.
 */
import { readdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AuthenticationCreds, SignalDataSet } from '@whiskeysockets/baileys'
import type { Library } from './library.ts'

/** The types whose files are read. The longest names come first, because a name may begin with another one. */
const TYPES = ['app-state-sync-key', 'app-state-sync-version', 'lid-mapping', 'identity-key', 'pre-key', 'session', 'tctoken'] as const
const FILES_MAX = 100_000

export interface FoundSession {
  readonly creds: AuthenticationCreds
  readonly keys: SignalDataSet
}

export const expanded = (path: string): string => (path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path)

/** Undefined if the folder does not exist, or its device was never linked. */
export async function findSession(library: Library, sessionPath: string): Promise<FoundSession | undefined> {
  const folder = expanded(sessionPath)
  const files: string[] = await readdir(folder).catch(() => [])
  if (!files.includes('creds.json')) return undefined
  const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(join(folder, file), 'utf8'), library.BufferJSON.reviver)
  const creds = (await read('creds.json')) as AuthenticationCreds
  if (creds.account === undefined || creds.me === undefined) return undefined
  const keys: Record<string, Record<string, unknown>> = {}
  for (const file of files.slice(0, FILES_MAX)) {
    const type = TYPES.find((name) => file.startsWith(`${name}-`) && file.endsWith('.json'))
    if (type === undefined) continue
    const id = file.slice(type.length + 1, -'.json'.length).replaceAll('__', '/')
    keys[type] = { ...keys[type], [id]: await read(file) }
  }
  return { creds, keys: keys as SignalDataSet }
}
