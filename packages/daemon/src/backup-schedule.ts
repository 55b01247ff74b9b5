/** Makes the backups of `[backup] schedule`, each in a process of its own, so that no request waits for one. */
import { readRecord } from '@sluice/backup'
import { type BackupConfig, backupSection } from '@sluice/config'
import { every } from '@sluice/kit'
import { errorText } from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

const LOOK_MS = 30_000
/** A backup that failed is tried again after this time. */
const RETRY_MS = 3_600_000
const BACKUP_MS_MAX = 12 * 3_600_000
const OUTPUT_BYTES_MAX = 65_536

export interface BackupScheduleOptions {
  /** The command that starts this program: a file and its first arguments. Without it, nothing is scheduled. */
  readonly program: readonly string[] | undefined
  readonly configFile: string
  readonly env: Readonly<Record<string, string | undefined>>
}

type Runtime = Pick<OpenRuntime, 'clock' | 'config' | 'dataDir' | 'log' | 'startedAtMs'>

/** Looks at the schedule until the signal aborts; a backup that runs then is ended. */
export function startBackups(runtime: Runtime, options: BackupScheduleOptions, signal: AbortSignal): void {
  const { clock } = runtime
  const log = runtime.log.child('backup')
  let isRunning = false
  let attemptedAtMs: number | undefined
  const look = async (): Promise<void> => {
    const config = runtime.config().core(backupSection)
    if (config.schedule === undefined || clock.nowMs() < (await dueMs(runtime, config.schedule, config, attemptedAtMs))) return
    if (!options.program) log.warn("backups are not scheduled inside another program; run 'sluice backup' by other means")
    else await runBackup(runtime, { ...options, program: options.program }, signal)
    attemptedAtMs = clock.nowMs()
  }
  void every(clock, LOOK_MS, signal, () => {
    if (isRunning) return
    isRunning = true
    look()
      .catch((error: unknown) => {
        attemptedAtMs = clock.nowMs()
        if (!signal.aborted) log.error('backup failed', { error: errorText(error) })
      })
      .finally(() => {
        isRunning = false
      })
  })
}

/** Resolves to the time of the next attempt. A backup that was missed while no daemon ran is made up for. */
async function dueMs(
  { dataDir, startedAtMs }: Runtime,
  expression: string,
  { timezone }: BackupConfig,
  attemptedAtMs: number | undefined,
): Promise<number> {
  const { last, failure } = readRecord(dataDir)
  const lastMs = last ? Date.parse(last.at) : undefined
  const failedMs = Math.max(failure ? Date.parse(failure.at) : 0, attemptedAtMs ?? 0)
  const { nextOccurrence } = await import('@sluice/kit/cron-expression')
  const next = nextOccurrence({ expression, timezone }, lastMs ?? startedAtMs) ?? Number.POSITIVE_INFINITY
  return failedMs > (lastMs ?? 0) ? Math.max(next, failedMs + RETRY_MS) : next
}

async function runBackup(
  { clock, dataDir, log }: Runtime,
  { program, configFile, env }: BackupScheduleOptions & { readonly program: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const { runProcess } = await import('@sluice/runtime/run-process')
  const [file = '', ...first] = program
  const { exitCode, stdout, stderr } = await runProcess(
    {
      file,
      args: [...first, 'backup', '--json', '--data-dir', dataDir, '--config', configFile],
      cwd: dataDir,
      env: Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    },
    {
      file,
      args: [],
      cwd: dataDir,
      env: {},
      policy: { writable: [], network: false },
      timeoutMs: BACKUP_MS_MAX,
      outputBytesMax: OUTPUT_BYTES_MAX,
      signal,
    },
    clock,
  )
  if (exitCode !== 0) throw new Error(stderr.trim().split('\n').at(-1) || `the process of the backup ended with ${exitCode}`)
  const { file: written, bytes } = JSON.parse(stdout) as { file: string; bytes: number }
  log.child('backup').info('backup written and verified', { file: written, bytes })
}
