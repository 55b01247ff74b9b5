/** Finds the running daemon of a data directory, and the address that a command sends requests to. */
import type { Status } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { Api } from './api/api.ts'
import { connectDaemon, parseUrl } from './api/open-api.ts'
import type { CliContext } from './context.ts'

export interface RunningDaemon {
  readonly running: true
  readonly pid: number
  readonly url: string | null
  readonly version: string
  readonly profile: string
  readonly started_at: string
  /** The answer of `GET /health`. */
  readonly health: unknown
  readonly status: Status
}

export type DaemonProbe = RunningDaemon | { readonly running: false; readonly reason: string }

/** Asks the daemon of a data directory for its status and its health. A daemon that does not answer is not running. */
export async function probeDaemon(dataDir: string): Promise<DaemonProbe> {
  try {
    const transport = await connectDaemon(dataDir)
    if (!transport) return { running: false, reason: `no daemon runs on ${dataDir}` }
    try {
      const api = new Api('daemon', transport)
      const [status, health] = await Promise.all([api.get<Status>('/api/status'), api.get('/health')])
      const { pid, url, version, profile, started_at } = status
      return { running: true, pid, url, version, profile, started_at, health, status }
    } finally {
      await transport.close()
    }
  } catch (error) {
    if (error instanceof AppError) return { running: false, reason: error.message }
    throw error
  }
}

/**
 * Returns `--url`, or the address of the daemon that runs on the data directory, without a slash at its end. Throws `unavailable`
 * if no daemon runs.
 */
export async function daemonAddress({ options, dataDir }: CliContext): Promise<string> {
  const { url } = options
  if (typeof url === 'string' && url !== '') {
    parseUrl(url)
    return url.replace(/\/$/, '')
  }
  const found = await probeDaemon(dataDir)
  if (found.running && found.url !== null) return found.url
  const reason = found.running ? 'it listens on no address' : found.reason
  throw new AppError('unavailable', `no daemon to send to: ${reason}; start one with 'sluice daemon', or name one with --url`)
}
