/** Finds the daemon that runs on a data directory by its `daemon.json`, and asks whether it is well. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signalScope } from '@sluice/kit'
import { errorText } from '@sluice/sdk'
import * as v from 'valibot'

const PROBE_MS = 5000
const daemonFile = v.object({
  pid: v.number(),
  url: v.string(),
  version: v.optional(v.string(), 'unknown'),
  profile: v.string(),
  started_at: v.string(),
})

export type DaemonProbe =
  | ({ readonly running: true; readonly health: unknown } & v.InferOutput<typeof daemonFile>)
  | { readonly running: false; readonly reason: string }

export async function probeDaemon(dataDir: string): Promise<DaemonProbe> {
  let described: v.InferOutput<typeof daemonFile>
  try {
    described = v.parse(daemonFile, JSON.parse(await readFile(join(dataDir, 'daemon.json'), 'utf8')))
  } catch {
    return { running: false, reason: `no daemon has written ${join(dataDir, 'daemon.json')}` }
  }
  using limit = signalScope([], PROBE_MS)
  try {
    const response = await fetch(`${described.url}/health`, { signal: limit.signal })
    if (!response.ok) return { running: false, reason: `${described.url}/health answers ${response.status}` }
    return { running: true, ...described, health: await response.json() }
  } catch (error) {
    return { running: false, reason: `nothing answers on ${described.url} (${errorText(error)}); the daemon ended without cleaning up` }
  }
}
