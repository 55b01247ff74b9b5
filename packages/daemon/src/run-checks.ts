/** Runs the checks of `sluice doctor`: opens what they need, and closes it again. */

import {
  type Check,
  checkDaemon,
  checkKept,
  checkMachine,
  checkRuntime,
  configProblems,
  type DaemonState,
  warn,
} from '@sluice/runtime/doctor'
import { withClusterConfig } from '@sluice/runtime/open-backend'
import { AppError, withFullStop } from '@sluice/sdk'
import { type DataDirLock, shareDataDir } from '@sluice/store'
import { type OpenRuntime, openRuntime, type RuntimeOptions } from './runtime/open-runtime.ts'

export type { DaemonState }

export interface DoctorOptions extends RuntimeOptions {
  /** The daemon of the data directory. Its own checks of the store replace ours. */
  readonly daemon: DaemonState
}

/**
 * Runs every check. Apart from the cost of the messages to models, none of them changes data; without a daemon, a missing data
 * directory and store are made. While a daemon holds the data directory, its database is not opened, the features are built on an
 * empty store, and the daemon sends the messages to models.
 */
export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const machine = await checkMachine(options.dataDir)
  let lock: DataDirLock | undefined
  let runtime: OpenRuntime | undefined
  try {
    lock = options.daemon.running ? undefined : shareDataDir(options.dataDir)
    const shared: Check[] = []
    runtime = lock ? await openRuntime({ ...options, quiet: true, lock }) : await openBeside(options, shared)
    const kept = lock ? await checkKept(runtime) : []
    return runtime.hideSecrets([...machine, ...kept, ...shared, ...(await checkRuntime(runtime, options)), ...checkDaemon(options.daemon)])
  } catch (error) {
    if (runtime) throw error
    return [...machine, ...configProblems(error), ...checkDaemon(options.daemon)]
  } finally {
    await runtime?.close(0)
    lock?.release()
  }
}

/** Opens the features that a running daemon has: in a cluster, with the configuration in the database, or else with that of the file. */
async function openBeside(options: DoctorOptions, problems: Check[]): Promise<OpenRuntime> {
  const given: RuntimeOptions = { ...options, quiet: true, only: 'features' }
  try {
    return await withClusterConfig(given, openRuntime)
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'unavailable')) throw error
    const detail = `the configuration of the cluster cannot be read now: ${withFullStop(error.message)} The lines below are about the file of this node`
    problems.push(warn('config', detail, 'make the database of [store] url reachable'))
    return openRuntime(given)
  }
}
