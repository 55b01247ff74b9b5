/** The checks of `sluice doctor`: each finds a problem of this installation, and says how to repair it. */
import { gatewaySection, policySection, sandboxSection, workspaceRoot } from '@sluice/config'
import { AppError } from '@sluice/sdk'
import { type DataDirLock, shareDataDir } from '@sluice/store'
import { withClusterConfig } from '../open-backend.ts'
import { type OpenRuntime, openRuntime, type RuntimeOptions } from '../open-runtime.ts'
import { type Check, warn } from './check.ts'
import { checkAgents } from './check-agents.ts'
import { checkBackups, checkRotation } from './check-backups.ts'
import {
  checkApprovalChats,
  checkChannels,
  checkDeliveries,
  checkOperators,
  checkShares,
  checkStrangers,
  checkWebhooks,
  hasChannels,
} from './check-channels.ts'
import { checkCluster } from './check-cluster.ts'
import { checkConfig, checkConfigPlace, checkExposure, checkPolicy, configProblems } from './check-config.ts'
import { checkDaemon, type DaemonState } from './check-daemon.ts'
import { checkMemory, checkStorage, checkStore } from './check-data.ts'
import { checkCallableTools, checkFeatures, checkLeftOutFiles, runFeatureChecks } from './check-features.ts'
import { checkDataDir, checkNode } from './check-machine.ts'
import { checkProcedures } from './check-procedures.ts'
import { checkProvider, tryTextHere } from './check-provider.ts'
import { checkInWorkspace, checkOtherSandboxes, checkSandbox } from './check-sandbox.ts'
import { checkSignatures } from './check-signatures.ts'
import { checkWorkspace } from './check-workspace.ts'

export type { DaemonState }

export interface DoctorOptions extends RuntimeOptions {
  /** The daemon of the data directory. Its checks take the place of those that need the store. */
  readonly daemon: DaemonState
}

/**
 * Runs every check. Apart from the cost of the messages to models, none of them changes data; without a daemon, a missing data
 * directory and store are made. While a daemon holds the data directory, its database is not opened, the features are built on an
 * empty store, and the daemon sends the messages to models.
 */
export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const machine = [checkNode(), ...(await checkDataDir(options.dataDir)), ...checkRotation(options.dataDir)]
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
    const detail = `the configuration of the cluster cannot be read now: ${error.message}. The lines below are about the file of this node`
    problems.push(warn('config', detail, 'make the database of [store] url reachable'))
    return openRuntime(given)
  }
}

/** The checks that need the store or the state of the features, which a daemon makes itself. */
export async function checkKept(runtime: OpenRuntime): Promise<Check[]> {
  const { store } = runtime
  const snapshot = runtime.snapshot()
  return [
    await checkStore(store),
    ...((await store.checkServer?.()) ?? []),
    ...(await checkCluster(store.cluster)),
    ...(await checkSignatures(store)),
    await checkStorage(store, snapshot.config, runtime.clock.nowMs()),
    await checkMemory(store.memory),
    checkBackups(runtime.dataDir, snapshot.config, runtime.clock.nowMs()),
    ...(await runFeatureChecks(snapshot)),
    // The checks of features can find further tools.
    ...checkCallableTools(runtime.snapshot()),
    ...(await checkDeliveries(store)),
    ...(await checkProcedures(runtime)),
  ]
}

async function checkRuntime(runtime: OpenRuntime, options: DoctorOptions): Promise<Check[]> {
  const snapshot = runtime.snapshot()
  const { config } = snapshot
  const root = workspaceRoot(config, options.dataDir)
  const guards = runtime.guards()
  const { tryText } = options.daemon
  const choice = await guards.sandbox.choice()
  return [
    ...checkConfig(config, options.configFile, runtime.sharedConfig?.version),
    ...(await checkConfigPlace(options.dataDir, options.configFile)),
    await checkWorkspace(root, options.dataDir, options.configFile),
    ...(await checkProvider(snapshot.registry.models, { tryText: tryText ?? tryTextHere(runtime.agent) })),
    checkExposure(config.core(gatewaySection)),
    ...checkPolicy(config.core(policySection), snapshot),
    ...(await checkAgents(runtime, { ...options, tryText })),
    checkSandbox(choice, config.core(sandboxSection)),
    ...(choice.warning === undefined ? await checkInWorkspace(guards.spawn, root) : []),
    ...(await checkOtherSandboxes(guards.sandbox)),
    ...checkFeatures(snapshot.features),
    ...checkLeftOutFiles(options.dataDir, snapshot.features),
    ...checkChannels(snapshot),
    ...checkWebhooks(snapshot),
    ...checkStrangers(snapshot),
    ...checkOperators(snapshot),
    ...(hasChannels(snapshot) ? [checkApprovalChats(snapshot)] : []),
    checkShares(snapshot),
  ]
}
