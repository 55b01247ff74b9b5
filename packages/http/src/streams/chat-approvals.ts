/** Asks the person in one chat whether a tool may run. Only an answer in time approves, whichever way it is given. */
import { randomUUID } from 'node:crypto'
import type { Approver } from '@sluice/agent'
import { type ApprovalRegistry, askAboutTool, toolApprovalRequest } from '@sluice/approvals'
import type { ApprovalKey, Logger, Standing } from '@sluice/sdk'
import type { ChatFrame } from './chat-frames.ts'

const TIMEOUT_SECS = 120
/** While this many questions are open, further tool calls are rejected. */
const PENDING_MAX = 64

export interface ChatApprovalOptions {
  readonly approvals: ApprovalRegistry
  readonly log: Logger
  readonly by: string
  readonly standing: Standing
  readonly send: (frame: ChatFrame) => void
}

export class ChatApprovals {
  readonly #approvals: ApprovalRegistry
  readonly #log: Logger
  readonly #by: string
  readonly #standing: Standing
  readonly #send: (frame: ChatFrame) => void
  readonly #pending = new Map<string, ApprovalKey>()

  /** `by` and `standing` describe the person in the chat, as in `Approval.by` and `Answerer`. */
  constructor({ approvals, log, by, standing, send }: ChatApprovalOptions) {
    this.#approvals = approvals
    this.#log = log
    this.#by = by
    this.#standing = standing
    this.#send = send
  }

  readonly ask: Approver = async (request, signal) => {
    if (signal.aborted || this.#pending.size >= PENDING_MAX) return false
    const requestId = randomUUID()
    // Counted before the first await, so that calls at the same time cannot exceed the limit.
    this.#pending.set(requestId, { runId: request.turn, stepId: request.callId })
    const question = {
      approvals: this.#approvals,
      signal,
      onOpen: (approval: ApprovalKey & { readonly state: string }) => {
        if (approval.state !== 'pending') return
        this.#pending.set(requestId, approval)
        const { tool, summary } = request
        const key = { run_id: approval.runId, step_id: approval.stepId }
        this.#send({
          type: 'approval_request',
          request_id: requestId,
          ...key,
          tool,
          arguments_summary: summary,
          timeout_secs: TIMEOUT_SECS,
        })
      },
    }
    try {
      // Subscribers of events see the question too and may answer it; chat platforms are not asked.
      return await askAboutTool(question, { ...toolApprovalRequest(request, TIMEOUT_SECS), channels: [] })
    } finally {
      this.#pending.delete(requestId)
    }
  }

  /** Returns false if no such question is open. */
  answer(requestId: string, approved: boolean): boolean {
    const key = this.#pending.get(requestId)
    if (!key) return false
    this.#pending.delete(requestId)
    this.#approvals
      .decide(key, { state: approved ? 'approved' : 'rejected', by: this.#by, who: { standing: this.#standing, isAsked: true } })
      .catch((error: unknown) => this.#log.error('answer to an approval not kept', { error }))
    return true
  }
}
