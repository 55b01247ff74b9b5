/** The agent: turns, sessions, budgets and tool calls. */

export { isOfLower, type Writer, writerOf } from './history/message-notes.ts'
export { chooseProviders, readsPictures } from './model/choose-providers.ts'
export { WINDOW_SOURCES } from './model/context-window.ts'
export type { ModelChain, ModelChainOptions } from './model/model-chain.ts'
export { createModelChain, isSameModel, shownLimits } from './model/model-chain.ts'
export type { Registry, RegistryPin } from './model/registry.ts'
export { createToolSpecs, type ToolSpecs } from './model/tool-specs.ts'
export type { ModelTestReport, ModelTestRequest, ModelTestResult } from './model-test/report.ts'
export { MODEL_TASKS, MODEL_TESTS, MODEL_TESTS_AND_TASKS, type ModelTaskName, type ModelTestName } from './model-test/test-names.ts'
export type { AgentDeps } from './run/agent.ts'
export { createAgent } from './run/agent.ts'
export { DIRECT_CALL, type DirectAnswer, type DirectCall, directCallText, readDirectAnswer, readDirectCall } from './run/direct-call.ts'
export { Admission, type AdmissionDeps, causeOf, describeLimit, type LimitedClient, quietMs } from './turn/admission.ts'
export { type AgentLimits, type AgentSettings, notConfigured } from './turn/agent-settings.ts'
export { isFree, priceOf } from './turn/cost.ts'
export { newTrace, newTurnId } from './turn/ids.ts'
export type { Scrub } from './turn/scrub.ts'
export { createScrub } from './turn/scrub.ts'
export { type ExceededShare, type Held, type HeldShare, type ShareName, Shares, type SharesDeps } from './turn/shares.ts'
export type {
  Agent,
  ApprovedBy,
  Approver,
  CallRequest,
  CallResult,
  FurtherWords,
  RunningTurn,
  ToolApprovalRequest,
  TurnDelivery,
  TurnPart,
  TurnRequest,
  TurnResult,
} from './turn/turn.ts'
export { createTurnQueue } from './turn/turn-queue.ts'
