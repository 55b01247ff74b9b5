/** Finds the running daemon of a data directory, and the address that a command sends requests to. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signalScope } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'
import * as v from 'valibot'
import type { CliContext } from './context.ts'

const PROBE_MS = 5000
/** The contents of `daemon.json`, which a daemon writes when it starts and removes when it stops. */
const daemonFile = v.object({
  pid: v.number(),
  url: v.string(),
  version: v.optional(v.string(), 'unknown'),
  profile: v.string(),
  started_at: v.string(),
})
type DaemonFile = v.InferOutput<typeof daemonFile>

export type DaemonProbe =
  | ({ readonly running: true; readonly health: unknown } & DaemonFile)
  | { readonly running: false; readonly reason: string }

/** Asks the daemon that `daemon.json` names for its health, for at most 5 seconds. */
export async function probeDaemon(dataDir: string): Promise<DaemonProbe> {
  let daemon: DaemonFile
  try {
    daemon = v.parse(daemonFile, JSON.parse(await readFile(join(dataDir, 'daemon.json'), 'utf8')))
  } catch {
    return { running: false, reason: `no daemon has written ${join(dataDir, 'daemon.json')}` }
  }
  using limit = signalScope([], PROBE_MS)
  try {
    const response = await fetch(`${daemon.url}/health`, { signal: limit.signal })
    if (!response.ok) return { running: false, reason: `${daemon.url}/health answers ${response.status}` }
    return { running: true, ...daemon, health: await response.json() }
  } catch (error) {
    return { running: false, reason: `nothing answers on ${daemon.url} (${errorText(error)}); the daemon ended without cleaning up` }
  }
}

/**
 * Returns `--url`, or the address of the daemon that runs on the data directory, without a slash at its end. Throws `unavailable`
 * if no daemon runs.
 */
export async function daemonAddress({ options, dataDir }: CliContext): Promise<string> {
  const { url } = options
  if (typeof url === 'string' && url !== '') {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw new AppError('invalid_request', `--url wants an address such as http://127.0.0.1:42617, not '${url}'`)
    return url.replace(/\/$/, '')
  }
  const found = await probeDaemon(dataDir)
  if (!found.running)
    throw new AppError('unavailable', `no daemon to send to: ${found.reason}; start one with 'sluice daemon', or name one with --url`)
  return found.url
}
