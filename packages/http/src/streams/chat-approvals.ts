/** Asks the person at the other end of one chat whether a tool may run. Only an answer in time approves, wherever it is given. */
import { randomUUID } from 'node:crypto'
import type { Approver } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import { askAboutTool, toolQuestion } from '@sluice/approvals'
import type { ApprovalKey, Logger } from '@sluice/sdk'
import type { ChatFrame } from './chat-frames.ts'

const TIMEOUT_SECS = 120
/** Beyond this many open questions the answer is no. */
const PENDING_MAX = 64

export interface ChatApprovalsOptions {
  readonly approvals: ApprovalRegistry
  readonly log: Logger
  /** Who answers here, as in `Approval.by`. */
  readonly by: string
  readonly send: (frame: ChatFrame) => void
}

export interface ChatApprovals {
  readonly ask: Approver
  /** False if no such question is open. */
  answer(requestId: string, approved: boolean): boolean
}

export function createChatApprovals({ approvals, log, by, send }: ChatApprovalsOptions): ChatApprovals {
  const pending = new Map<string, ApprovalKey>()
  return {
    async ask(request, signal) {
      if (signal.aborted || pending.size >= PENDING_MAX) return false
      const requestId = randomUUID()
      // Its place is taken before anything is awaited.
      pending.set(requestId, { runId: request.turn, stepId: request.callId })
      try {
        return await askAboutTool(
          {
            approvals,
            signal,
            onOpen(approval) {
              if (approval.state !== 'pending') return
              pending.set(requestId, approval)
              const { tool, summary } = request
              send({ type: 'approval_request', request_id: requestId, tool, arguments_summary: summary, timeout_secs: TIMEOUT_SECS })
            },
          },
          // Whoever follows events is told of it too, and may answer; no chat platform is.
          { ...toolQuestion(request, TIMEOUT_SECS), channels: [] },
        )
      } finally {
        pending.delete(requestId)
      }
    },
    answer(requestId, approved) {
      const key = pending.get(requestId)
      if (!key) return false
      pending.delete(requestId)
      approvals
        .decide(key, { state: approved ? 'approved' : 'rejected', by })
        .catch((error: unknown) => log.error('an answer to an approval could not be kept', { error }))
      return true
    },
  }
}
