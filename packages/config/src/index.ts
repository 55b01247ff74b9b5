/** The configuration of Sluice: TOML with positions, sections, validation, editing and its documentation. */

export { type AgentConfig, agentSection, type CostConfig, costSection } from './agent-sections.ts'
export { agentNames, agentsOfChats, type ConfiguredAgent, configuredAgents, routingSections, workspaceRoots } from './agents.ts'
export { agentsSection } from './agents-section.ts'
export { unknownAgent } from './check-agents.ts'
export { type ClusterConfig, clusterSection } from './cluster-section.ts'
export { configuredSecrets } from './configured-secrets.ts'
export {
  approvalsSection,
  type BackupConfig,
  backupSection,
  CORE_SECTIONS,
  type DeliveryConfig,
  deliverySection,
  type GatewayConfig,
  gatewaySection,
  httpSection,
  logSection,
  observabilityBackends,
  observabilitySection,
  type SandboxConfig,
  type StoreConfig,
  sandboxSection,
  sessionsSection,
  storeSection,
} from './core-sections.ts'
export { effectiveConfig } from './effective-config.ts'
export { isLoopbackHost, isOpenToAll, OPEN_TO_ALL, PLAIN_HTTP, requireSignatures, unsignedChannels } from './exposure.ts'
export { FORMER_KEYS } from './former-keys.ts'
export { leftOutFiles } from './left-out-files.ts'
export { type ClientShares, type LimitedClient, limitsOf, loopTurnsOf, NO_SHARES, operatorsOf, sharesOf } from './limits.ts'
export { limitsSection } from './limits-section.ts'
export { parseNetwork } from './network.ts'
export { conversationOf, TARGETS } from './notification-targets.ts'
export { policySection } from './policy-section.ts'
export { type ProviderConfig, providerEndpoint, providerSection } from './provider-section.ts'
export { type ConfigSource, type ConfigValues, parseConfig, readConfig, readConfigText, sectionsOf } from './read-config.ts'
export { readTomlFile } from './read-toml-file.ts'
export { joinSharedConfig, nodeText, placeOfKey, readNodeText, readSourceConfig, readSourceText } from './shared-text.ts'
export { EXECUTION_MODES, PRIORITIES, sopSection, sopsFolders } from './sop-section.ts'
export { expectation } from './toml/explain-issue.ts'
export { followPath, formatKeyPath, type KeyPath, parseKeyPath } from './toml/key-path.ts'
export { locateFindings } from './toml/locate.ts'
export { parseToml } from './toml/parse-toml.ts'
export { type Finding, problemLine, type TomlProblem } from './toml/problem.ts'
export { readTomlAs } from './toml/read-toml-as.ts'
export { sectionKeys } from './toml/schema-keys.ts'
export { isTable } from './toml/unknown-keys.ts'
export type { LeftOut, LoadedConfig, SectionState } from './types.ts'
export { LOSS_HOLD_MS, watchConfig } from './watch-config.ts'
export { expandHome, workspaceRoot } from './workspace-root.ts'
