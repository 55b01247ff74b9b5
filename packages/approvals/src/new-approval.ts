/** Checks a question and makes the approval that is stored for it. */
import { randomBytes } from 'node:crypto'
import { APPROVAL_MESSAGE_CHARS_MAX, AppError, type ApprovalKey, type ApprovalRequest, type NewApproval } from '@sluice/sdk'
import { keywordsOf } from './keywords.ts'

export const ID_CHARS_MAX = 200
export const WORKFLOW_CHARS_MAX = 200
export const TITLE_CHARS_MAX = 256
/** The largest timeout: ten years. */
export const TIMEOUT_SECS_MAX = 315_360_000
/** 16 characters of base64url, so that a button's value is far shorter than every platform's limit. */
const TOKEN_BYTES = 12

const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u

/** Returns the key as one text. Different keys have different texts. */
export const keyText = ({ runId, stepId }: ApprovalKey): string => JSON.stringify([runId, stepId])

/** Throws `invalid_request` for a question with a member that is too long or malformed. */
export function newApproval(question: ApprovalRequest, nowMs: number): NewApproval {
  const { runId, stepId, gate, workflow, title, message, timeoutSecs, callHash = null, owner = null, origin } = question
  const { decider = 'asker', standing = null, sources = [] } = question
  checkId(runId, 'run_id')
  checkId(stepId, 'step_id')
  checkLength(workflow, 'workflow_name', WORKFLOW_CHARS_MAX)
  checkLength(title, 'The title', TITLE_CHARS_MAX)
  checkLength(message, 'The message', APPROVAL_MESSAGE_CHARS_MAX)
  if (!(timeoutSecs >= 0 && timeoutSecs <= TIMEOUT_SECS_MAX))
    throw new AppError('invalid_request', `timeout is a number of seconds from 0 to ${TIMEOUT_SECS_MAX}`)
  return {
    runId,
    stepId,
    gate,
    workflow: workflow.toWellFormed(),
    title: title.toWellFormed(),
    message: message.toWellFormed(),
    callHash,
    owner,
    person: origin?.sender ?? null,
    decider,
    standing,
    sources,
    ...keywordsOf(question),
    createdAtMs: nowMs,
    expiresAtMs: timeoutSecs === 0 ? null : nowMs + Math.ceil(timeoutSecs * 1000),
    token: randomBytes(TOKEN_BYTES).toString('base64url'),
  }
}

function checkId(id: string, name: string): void {
  if (id.length > ID_CHARS_MAX || !PRINTABLE.test(id) || id.trim() !== id)
    throw new AppError('invalid_request', `${name} is 1 to ${ID_CHARS_MAX} printable characters`)
  // Clients resolve these segments when they parse the address of an approval.
  if (id === '.' || id === '..') throw new AppError('invalid_request', `${name} cannot be '${id}'`)
}

function checkLength(text: string, name: string, max: number): void {
  if (text.length > max) throw new AppError('invalid_request', `${name} is longer than ${max} characters`)
}
