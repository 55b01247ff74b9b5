/** The approval registry, as those see it who ask people (§3, §6): open a question, wait for the one answer it gets. */
import type { Approval, ApprovalGate, ApprovalKey, ApprovalState } from './approval-store.ts'
import type { Address } from './channel.ts'

/** The longest `Question.message`. */
export const APPROVAL_MESSAGE_CHARS_MAX = 16_384

export interface Question extends ApprovalKey {
  readonly gate: ApprovalGate
  /** The procedure, the tool, or what the posting program calls its workflow. */
  readonly workflow: string
  readonly title: string
  readonly message: string
  /** As in `NewApproval`. */
  readonly callHash?: string
  /** As in `NewApproval`. */
  readonly owner?: string
  /** Both absent: `approve`, `approved`, `yes`, `lgtm` and `reject`, `rejected`, `no`. */
  readonly approveKeywords?: readonly string[]
  readonly rejectKeywords?: readonly string[]
  /** 0: it waits for ever. */
  readonly timeoutSecs: number
  /** The conversation it came from is asked in any case. */
  readonly origin?: {
    readonly channel: string
    readonly account: string
    readonly to: Address
    /** Who wrote there what led to the question: where nobody can quote, only their word counts as an answer. */
    readonly sender?: string
  }
  /** Dispatch targets to ask, in any case; absent: those of `[approvals] channels`. */
  readonly channels?: readonly string[]
  /** Overrides the conversation configured for notifications. */
  readonly channelId?: string
}

/** What became of one target: its prompt is queued, every subscriber is told, or why nothing can be sent. */
export interface AskedTarget {
  readonly channel: string
  readonly status: 'queued' | 'broadcast' | 'unavailable'
  readonly detail: string
  /** In the outbox. */
  readonly outbox?: readonly number[]
}

export interface Approvals {
  /** Durable once it resolves. A key that is known asks nobody again and resolves to what is there. Throws
   * `invalid_request`, `conflict` for a key under which another gate asks, and `unavailable` when too many wait. */
  open(question: Question): Promise<{ readonly opened: boolean; readonly approval: Approval; readonly asked: readonly AskedTarget[] }>
  /**
   * The first decision wins, and is durable once this resolves; the gate takes it right after. Throws `not_found` for a key
   * nobody opened.
   */
  decide(
    key: ApprovalKey,
    decision: { readonly state: Exclude<ApprovalState, 'pending'>; readonly by: string; readonly feedback?: string },
  ): Promise<{ readonly won: boolean; readonly approval: Approval }>
  get(key: ApprovalKey): Promise<Approval | undefined>
  /**
   * Who takes the decisions of one kind: called for each, again after a failure and after a restart, until it resolves. Then
   * the decision is told and confirmed. One taker a kind; decisions wait until there is one. Returns the way out.
   */
  taker(gate: ApprovalGate, take: (approval: Approval) => Promise<void>): () => void
}
