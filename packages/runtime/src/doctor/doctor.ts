/** The checks of `sluice doctor`: each finds a problem of this installation, and says how to repair it. */
import { gatewaySection, policySection, sandboxSection, workspaceRoot } from '@sluice/config'
import { type OpenRuntime, openRuntime, type RuntimeOptions } from '../open-runtime.ts'
import type { Check } from './check.ts'
import { checkAgents } from './check-agents.ts'
import { checkChannels, checkDeliveries, checkWebhooks } from './check-channels.ts'
import { checkConfig, checkConfigPlace, checkExposure, checkPolicy, configProblems } from './check-config.ts'
import { checkDaemon, type DaemonState } from './check-daemon.ts'
import { checkMemory, checkStorage, checkStore } from './check-data.ts'
import { checkFeatures, checkLeftOutFiles, runFeatureChecks } from './check-features.ts'
import { checkDataDir, checkNode } from './check-machine.ts'
import { checkProcedures } from './check-procedures.ts'
import { checkProvider } from './check-provider.ts'
import { checkInWorkspace, checkOtherSandboxes, checkSandbox } from './check-sandbox.ts'
import { checkWorkspace } from './check-workspace.ts'

export interface DoctorOptions extends RuntimeOptions {
  readonly daemon: DaemonState
}

/** Runs every check. None of them changes data; a missing data directory and store are made. */
export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const machine = [checkNode(), ...(await checkDataDir(options.dataDir))]
  let runtime: OpenRuntime
  try {
    runtime = await openRuntime({ ...options, quiet: true })
  } catch (error) {
    return [...machine, ...configProblems(error)]
  }
  try {
    return runtime.hideSecrets([...machine, ...(await checkRuntime(runtime, options))])
  } finally {
    await runtime.close(0)
  }
}

async function checkRuntime(runtime: OpenRuntime, options: DoctorOptions): Promise<Check[]> {
  const { store } = runtime
  const snapshot = runtime.snapshot()
  const { config } = snapshot
  const root = workspaceRoot(config, options.dataDir)
  const guards = runtime.guards()
  const choice = await guards.sandbox.choice()
  return [
    await checkStore(store),
    await checkStorage(store, config, runtime.clock.nowMs()),
    ...checkConfig(config, options.configFile),
    ...(await checkConfigPlace(options.dataDir, options.configFile)),
    await checkWorkspace(root, options.dataDir, options.configFile),
    ...(await checkProvider(snapshot.registry.models)),
    checkExposure(config.core(gatewaySection)),
    ...checkPolicy(config.core(policySection), snapshot),
    ...(await checkAgents(runtime, options)),
    checkSandbox(choice, config.core(sandboxSection)),
    ...(choice.warning === undefined ? await checkInWorkspace(guards.spawn, root) : []),
    ...(await checkOtherSandboxes(guards.sandbox)),
    ...checkFeatures(snapshot.features),
    ...checkLeftOutFiles(options.dataDir, snapshot.features),
    ...(await runFeatureChecks(snapshot)),
    ...checkChannels(snapshot),
    ...checkWebhooks(snapshot),
    ...(await checkDeliveries(store)),
    ...(await checkProcedures(runtime)),
    await checkMemory(store.memory),
    ...checkDaemon(options.daemon),
  ]
}
