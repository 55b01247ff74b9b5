/** The agent: turns, sessions, budgets and tool calls. */

export type { AgentConfig, CostConfig, ProviderConfig } from './config.ts'
export { agentSection, costSection, policySection, providerSection } from './config.ts'
export type { ModelChain } from './model-chain.ts'
export type { Lease, Registry } from './registry.ts'
export type { Agent, ApprovalRequest, Approver, TurnPart, TurnRequest, TurnResult } from './turn.ts'
