/** The agent: turns, sessions, budgets and tool calls. */

export type { AgentDeps } from './agent.ts'
export { createAgent } from './agent.ts'
export { chooseProviders } from './choose-providers.ts'
export type { AgentSettings } from './conduct-turn.ts'
export type { AgentConfig, CostConfig, ProviderConfig } from './config.ts'
export { agentSection, costSection, policySection, providerSection } from './config.ts'
export { newTrace, newTurnId } from './ids.ts'
export type { ModelChain, ModelChainOptions } from './model-chain.ts'
export { createModelChain } from './model-chain.ts'
export type { Lease, Registry } from './registry.ts'
export type { Agent, ApprovalRequest, Approver, TurnDelivery, TurnPart, TurnRequest, TurnResult } from './turn.ts'
