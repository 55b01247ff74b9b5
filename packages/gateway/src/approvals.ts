/** Approvals for programs that start no daemon: how they show, and what is said of those nobody knows. */
export { APPROVAL_STATES, shownApproval } from './approvals/approval-schema.ts'
export { FEEDBACK_CHARS_MAX } from './approvals/keywords.ts'
export { decidedBefore, unknownApproval } from './approvals/refusals.ts'
