/**
 * Reports the state of the daemon to systemd: readiness, reloads, stops and the watchdog. Node has no datagram sockets of the Unix
 * domain, so `systemd-notify`, which is part of systemd, sends each report.
 */
import { systemClock } from '@sluice/kit'
import { createRunBare } from '@sluice/runtime/run-process'
import { errorText, type Logger, type RunBare } from '@sluice/sdk'

export interface SystemdReports {
  /** Reports that the daemon accepts connections, or that a reload has ended. Feeds the watchdog from now on. */
  ready(): Promise<void>
  /** Reports that the daemon reads its configuration again. `ready` ends it. */
  reloading(): Promise<void>
  /** Reports that the daemon is stopping. */
  stopping(): Promise<void>
  /** Ends the reports to the watchdog. */
  close(): void
}

export interface SystemdReportsOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly log: Pick<Logger, 'warn'>
  /** Default: runs the program without a sandbox. */
  readonly run?: RunBare
}

/** Reports per period of the watchdog: one may fail or be late without a restart. */
const REPORTS_PER_PERIOD = 3
const ATTEMPTS_MAX = 5
const MICROSECONDS = 1000

/** Returns undefined if systemd does not wait for reports. No method rejects: a report that fails is logged. */
export function systemdReports({ env, pid, log, run = createRunBare(systemClock) }: SystemdReportsOptions): SystemdReports | undefined {
  const { NOTIFY_SOCKET } = env
  if (!NOTIFY_SOCKET) return undefined
  const reporterEnv = { NOTIFY_SOCKET, PATH: env.PATH ?? '/usr/local/bin:/usr/bin:/bin' }
  const ended = new AbortController()
  let feeding: NodeJS.Timeout | undefined
  let isFeeding = false

  /** Resolves to the reason of a failure, or to undefined. */
  async function trySend(assignments: readonly string[]): Promise<string | undefined> {
    try {
      const { exitCode, stderr } = await run({ file: 'systemd-notify', args: assignments, cwd: '/', env: reporterEnv }, ended.signal)
      return exitCode === 0 ? undefined : stderr.trim() || `exit code ${exitCode}`
    } catch (error) {
      return errorText(error)
    }
  }

  /** systemd may not take a report in time on a busy machine. It would end a daemon that does not report its readiness. */
  async function send(...assignments: string[]): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !ended.signal.aborted; attempt++) {
      const error = await trySend(assignments)
      if (error === undefined || ended.signal.aborted) return
      log.warn('systemd did not take a report', { report: assignments[0], attempt, error })
    }
  }

  async function feed(): Promise<void> {
    if (isFeeding) return
    isFeeding = true
    await send('WATCHDOG=1')
    isFeeding = false
  }

  return {
    async ready() {
      const everyMs = watchdogMs(env, pid)
      if (everyMs !== undefined) feeding ??= setInterval(() => void feed(), everyMs)
      await send('READY=1')
    },
    reloading: () => send('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / BigInt(MICROSECONDS)}`),
    stopping: () => send('STOPPING=1'),
    close() {
      clearInterval(feeding)
      ended.abort()
    },
  }
}

/** Returns the interval of the reports to the watchdog in milliseconds, or undefined if this process has no watchdog. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: SystemdReportsOptions['env'], pid: number): number | undefined {
  const period = Number(WATCHDOG_USEC)
  const isMine = WATCHDOG_PID === undefined || WATCHDOG_PID === String(pid)
  return isMine && period > 0 ? Math.max(1, Math.floor(period / MICROSECONDS / REPORTS_PER_PERIOD)) : undefined
}
