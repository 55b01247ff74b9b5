/** The checks of `sluice doctor`: each finds a problem of this installation, and says how to repair it. */
import { agentSection, gatewaySection, policySection, sandboxSection, workspaceRoot } from '@sluice/config'
import { MAIN_AGENT, type SharedConfig } from '@sluice/sdk'
import type { Check } from './check.ts'
import { type AgentChecked, checkAgents, checkIdentity, shellOf } from './check-agents.ts'
import { checkBackups, checkRotation } from './check-backups.ts'
import {
  checkAbsentChannels,
  checkApprovalChats,
  checkChannels,
  checkDeliveries,
  checkOperatorChats,
  checkOperators,
  checkShares,
  checkStrangers,
  checkWebhooks,
  hasChannels,
} from './check-channels.ts'
import { checkCluster } from './check-cluster.ts'
import { checkConfig, checkConfigPlace, checkExposure, checkPolicy, configProblems } from './check-config.ts'
import { checkCosts } from './check-costs.ts'
import { checkDaemon, type DaemonState } from './check-daemon.ts'
import { checkMemory, checkStorage, checkStore } from './check-data.ts'
import { checkAbilities, checkCallableTools, checkFeatures, checkLeftOutFiles, type MainAgent, runFeatureChecks } from './check-features.ts'
import { checkDataDir, checkNetwork, checkNode } from './check-machine.ts'
import { checkProcedures, type ProceduresChecked } from './check-procedures.ts'
import { checkProvider, tryTextHere } from './check-provider.ts'
import { checkRooms } from './check-rooms.ts'
import { checkInWorkspace, checkOtherSandboxes, checkSandbox } from './check-sandbox.ts'
import { checkSignatures } from './check-signatures.ts'
import { checkWorkspace } from './check-workspace.ts'

export { type Check, warn } from './check.ts'
export {
  checkAgents,
  checkApprovalChats,
  checkChannels,
  checkCosts,
  checkDaemon,
  checkDeliveries,
  checkIdentity,
  checkOperatorChats,
  checkOperators,
  checkProcedures,
  checkShares,
  checkWebhooks,
  configProblems,
  type DaemonState,
}

/** The open runtime that is checked. */
export interface Checked extends AgentChecked, ProceduresChecked {
  readonly sharedConfig?: { readonly config: SharedConfig; readonly version: number } | undefined
}

/** Where the runtime has its files, and the daemon of its data directory. */
export interface CheckedPlace {
  readonly dataDir: string
  readonly configFile: string
  /** Its own checks of the store replace ours. */
  readonly daemon: DaemonState
}

/** The checks that need no configuration. A missing data directory is made. */
export const checkMachine = async (dataDir: string): Promise<Check[]> => [
  checkNode(),
  ...checkNetwork(),
  ...(await checkDataDir(dataDir)),
  ...checkRotation(dataDir),
]

/** The checks that need the store or the state of the features, which a daemon makes itself. */
export async function checkKept(runtime: Checked): Promise<Check[]> {
  const { store } = runtime
  const snapshot = runtime.snapshot()
  return [
    await checkStore(store),
    ...((await store.checkServer?.()) ?? []),
    ...(await checkCluster(store.cluster)),
    ...(await checkSignatures(store)),
    await checkStorage(store, snapshot.config, runtime.clock.nowMs()),
    await checkMemory(store.memory),
    ...(await checkRooms(store)),
    checkBackups(runtime.dataDir, snapshot.config, runtime.clock.nowMs()),
    ...(await runFeatureChecks(snapshot)),
    // The checks of features can find further tools.
    ...checkCallableTools(runtime.snapshot()),
    ...(await checkAbsentChannels(store, snapshot)),
    ...(await checkDeliveries(store)),
    ...(await checkProcedures(runtime)),
  ]
}

function mainAgent(runtime: Checked): MainAgent {
  const { config } = runtime.snapshot()
  const { timezone } = config.core(agentSection)
  const policy = runtime.lifecycle.agents().get(MAIN_AGENT)?.policy ?? config.core(policySection)
  return { policy, confines: runtime.guards().confines(), timezone }
}

function mainShell(runtime: Checked): Check[] {
  const main = runtime.lifecycle.agents().get(MAIN_AGENT)
  return main ? shellOf(runtime, main, 'security.policy') : []
}

/** The checks of the configuration and of the features that it has built. Apart from the cost of messages to models, they change no data. */
export async function checkRuntime(runtime: Checked, options: CheckedPlace): Promise<Check[]> {
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
    ...checkCosts(snapshot),
    checkExposure(config.core(gatewaySection)),
    ...checkPolicy(config.core(policySection), snapshot),
    ...mainShell(runtime),
    ...(await checkAgents(runtime, { ...options, tryText })),
    ...(await checkIdentity(runtime)),
    checkSandbox(choice, config.core(sandboxSection)),
    ...(choice.warning === undefined ? await checkInWorkspace(guards.spawn, root) : []),
    ...(await checkOtherSandboxes(guards.sandbox)),
    ...checkFeatures(snapshot.features),
    checkAbilities(snapshot, mainAgent(runtime)),
    ...checkLeftOutFiles(options.dataDir, snapshot.features),
    ...checkChannels(snapshot),
    ...checkWebhooks(snapshot),
    ...checkStrangers(snapshot),
    ...checkOperators(snapshot),
    ...(hasChannels(snapshot) ? [checkApprovalChats(snapshot)] : []),
    ...checkOperatorChats(snapshot),
    checkShares(snapshot),
  ]
}
