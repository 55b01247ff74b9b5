/** The configuration of Sluice: TOML with positions, sections, validation, editing and its documentation. */

export { joinSharedConfig, nodeText, placeOfKey, readNodeText, readSourceConfig, readSourceText } from './edit/cluster-text.ts'
export { configuredSecrets } from './read/configured-secrets.ts'
export { effectiveConfig } from './read/effective-config.ts'
export { FORMER_KEYS } from './read/former-keys.ts'
export { leftOutFiles } from './read/left-out-files.ts'
export { type ConfigSource, type ConfigValues, parseConfig, readConfig, readConfigText, sectionsOf } from './read/read-config.ts'
export { readTomlFile } from './read/read-toml-file.ts'
export { LOSS_HOLD_MS, watchConfig } from './read/watch-config.ts'
export { unknownAgent } from './sections/check-agents.ts'
export { type ClusterConfig, clusterSection } from './sections/cluster-section.ts'
export {
  agentNames,
  agentsOfChats,
  type ConfiguredAgent,
  configuredAgents,
  plainReasons,
  routingSections,
  workspaceRoots,
} from './sections/configured-agents.ts'
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
  notifySection,
  observabilityBackends,
  observabilitySection,
  type SandboxConfig,
  type StoreConfig,
  sandboxSection,
  sessionsSection,
  storeSection,
} from './sections/core-sections.ts'
export { isLoopbackHost, isOpenToAll, OPEN_TO_ALL, PLAIN_HTTP, requireSignatures, unsignedChannels } from './sections/exposure.ts'
export { agentsSection } from './sections/further-agents-section.ts'
export {
  type ClientShares,
  countedAs,
  type LimitedClient,
  limitsOf,
  loopTurnsOf,
  NO_SHARES,
  operatorsOf,
  type Pacing,
  pacingOf,
  type Reset,
  resetOf,
  roomsOf,
  sharesOf,
} from './sections/limits.ts'
export { limitsSection } from './sections/limits-section.ts'
export {
  type AgentConfig,
  agentSection,
  type CostConfig,
  costSection,
  type TurnLimits,
  turnLimits,
} from './sections/main-agent-sections.ts'
export { parseNetwork } from './sections/network.ts'
export { conversationOf, TARGETS } from './sections/notification-targets.ts'
export { policySection } from './sections/policy-section.ts'
export { type ProviderConfig, providerEndpoint, providerSection } from './sections/provider-section.ts'
export { EXECUTION_MODES, PRIORITIES, sopSection, sopsFolders } from './sections/sop-section.ts'
export { expandHome, workspaceRoot } from './sections/workspace-root.ts'
export { expectation } from './toml/explain-issue.ts'
export { followPath, formatKeyPath, type KeyPath, parseKeyPath } from './toml/key-path.ts'
export { locateFindings } from './toml/locate.ts'
export { parseToml } from './toml/parse-toml.ts'
export { type Finding, problemLine, type TomlProblem } from './toml/problem.ts'
export { readTomlAs } from './toml/read-toml-as.ts'
export { sectionKeys } from './toml/schema-keys.ts'
export { isTable } from './toml/unknown-keys.ts'
export type { LeftOut, LoadedConfig, SectionState } from './types.ts'
