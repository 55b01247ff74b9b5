/** Questions to people: the registry, prompts, matching of replies and the dispatch of decisions. */

export { type ApprovalCaller, outlineOf } from './access.ts'
export { createAnswerRunner } from './answer-runner.ts'
export { APPROVAL_STATES, approvalSchema, shownApproval } from './approval-schema.ts'
export { FEEDBACK_CHARS_MAX, KEYWORDS_MAX } from './keywords.ts'
export { TIMEOUT_SECS_MAX } from './new-approval.ts'
export { decidedBefore, notYours, unknownApproval } from './refusals.ts'
export { type ApprovalRegistry, createApprovals } from './registry.ts'
export { type Conversation, targetsOf } from './targets.ts'
export { askAboutTool, createToolApprover, toolQuestion } from './tool-approver.ts'
export { unsettled } from './unsettled.ts'
