/** The agent: turns, sessions, budgets and tool calls. */

export { Admission, type AdmissionDeps, causeOf, describeLimit, type LimitedClient, quietMs } from './admission.ts'
export type { AgentDeps } from './agent.ts'
export { createAgent } from './agent.ts'
export { type AgentLimits, type AgentSettings, notConfigured } from './agent-settings.ts'
export { chooseProviders } from './choose-providers.ts'

export { priceOf } from './cost.ts'
export { DIRECT_CALL, type DirectAnswer, type DirectCall, directCallText, readDirectAnswer, readDirectCall } from './direct-call.ts'
export { newTrace, newTurnId } from './ids.ts'
export type { ModelChain, ModelChainOptions } from './model-chain.ts'
export { createModelChain, isSameModel, shownLimits } from './model-chain.ts'
export type { ModelTestReport, ModelTestRequest, ModelTestResult } from './model-test/report.ts'
export { MODEL_TESTS, type ModelTestName } from './model-test/test-names.ts'
export type { Registry, RegistryPin } from './registry.ts'
export type { Scrub } from './scrub.ts'
export { createScrub } from './scrub.ts'
export { type ExceededShare, type Held, type HeldShare, type ShareName, Shares, type SharesDeps } from './shares.ts'
export { createToolSpecs, type ToolSpecs } from './tool-specs.ts'
export type {
  Agent,
  ApprovedBy,
  Approver,
  CallRequest,
  CallResult,
  ToolApprovalRequest,
  TurnDelivery,
  TurnPart,
  TurnRequest,
  TurnResult,
} from './turn.ts'
export { createTurnQueue } from './turn-queue.ts'
