/** Questions to people: the registry, prompts, matching of replies and the dispatch of decisions. */

export {
  type ApprovalCaller,
  approvalSchema,
  decidedBefore,
  notYours,
  outlineOf,
  type ShownApproval,
  shownApproval,
  unknownApproval,
} from './api.ts'
export { FEEDBACK_CHARS_MAX, KEYWORDS_MAX } from './keywords.ts'
export { mayDecide } from './may-decide.ts'
export { TIMEOUT_SECS_MAX } from './new-approval.ts'
export { unfinishedApprovals } from './open-approvals.ts'
export { type ApprovalOptions, ApprovalRegistry } from './registry.ts'
export { APPROVAL_STATES } from './states.ts'
export { type Conversation, targetsOf } from './targets.ts'
export { askAboutTool, createToolApprover, toolApprovalRequest } from './tool-approver.ts'
