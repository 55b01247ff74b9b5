/** Finds the running daemon of a data directory, and the address that a command sends requests to. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Status } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { shareDataDir } from '@sluice/store/lock-data-dir'
import type { Api } from './api/api.ts'
import { notAnswering, openRunning, parseUrl } from './api/open-api.ts'
import type { CliContext } from './context.ts'
import { textOption } from './option-values.ts'

export interface RunningDaemon {
  readonly running: true
  readonly pid: number
  readonly url: string | null
  readonly version: string
  readonly profile: string
  readonly started_at: string
  /** The answer of `GET /health`. */
  readonly health: unknown
  /** The agents, `main` first. */
  readonly agents: Status['agents']
  readonly cluster: Status['cluster']
  readonly programs: Status['programs']
  readonly model_limits: Status['model_limits']
  readonly problems: Status['problems']
  readonly queues: Status['queues']
  readonly last_backup: Status['last_backup']
}

export interface MissingDaemon {
  readonly running: false
  readonly reason: string
  /** The answer of `GET /health` of a daemon that runs and cannot give its status, such as without its database. */
  readonly health?: unknown
}

export type DaemonProbe = RunningDaemon | MissingDaemon

/** Whether a daemon that starts, runs, stops or hangs holds the data directory. */
export function isHeld(dataDir: string): boolean {
  // A look at a directory that no daemon has used yet leaves no file in it.
  if (!existsSync(join(dataDir, 'daemon.lock'))) return false
  const lock = shareDataDir(dataDir)
  lock?.release()
  return lock === undefined
}

/** Asks the daemon of the data directory, or of `--url`, for its status and its health. A daemon that does not answer is not running. Throws the refusal of a daemon, or of the system, that does not let the caller see it. */
export async function probeDaemon(context: CliContext): Promise<DaemonProbe> {
  try {
    const { dataDir } = context
    const found = await askRunning(context, probe)
    return found ?? { running: false, reason: isHeld(dataDir) ? notAnswering(dataDir).message : `no daemon runs on ${dataDir}` }
  } catch (error) {
    // A caller whom the daemon refuses cannot see whether it runs well.
    if (error instanceof AppError && !REFUSALS.includes(error.code)) return { running: false, reason: error.message }
    throw error
  }
}

const REFUSALS: readonly string[] = ['forbidden', 'unauthorized']

/** Returns what the daemon of the data directory, or of `--url`, answers; undefined if none runs. */
export async function askRunning<Answer>(context: CliContext, ask: (api: Api) => Promise<Answer>): Promise<Answer | undefined> {
  const running = await openRunning(context)
  if (!running) return undefined
  try {
    return await ask(running.api)
  } finally {
    await running.close()
  }
}

async function probe(api: Api): Promise<DaemonProbe> {
  const health = await api.get('/health')
  const status = await api.get<Status>('/api/status').catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'unavailable') return error.message
    throw error
  })
  if (typeof status === 'string') return { running: false, reason: status, health }
  // A daemon of an earlier release reports no problems and no programs.
  const {
    pid,
    url,
    version,
    profile,
    started_at,
    agents,
    cluster,
    programs = [],
    model_limits,
    problems = [],
    queues,
    last_backup,
  } = status
  const about = { pid, url, version, profile, started_at, health, agents, cluster, programs }
  return { running: true, ...about, model_limits, problems, queues, last_backup }
}

/**
 * Returns `--url`, or the address of the daemon that runs on the data directory, without a slash at its end. Throws `unavailable`
 * if no daemon runs.
 */
export async function daemonAddress(context: CliContext): Promise<string> {
  const url = textOption(context, 'url')
  if (url !== undefined) {
    parseUrl(url)
    return url.replace(/\/$/, '')
  }
  const found = await probeDaemon(context)
  if (found.running && found.url !== null) return found.url
  const reason = found.running ? 'it listens on no address' : found.reason
  throw new AppError('unavailable', `no daemon to send to: ${reason}; start one with 'sluice daemon', or name one with --url`)
}
