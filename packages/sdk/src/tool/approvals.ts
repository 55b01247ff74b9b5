/** The approval registry as gates see it: open a question and receive its one decision (docs/contract.md#approvals). */

import type { Address } from '../channel/channel.ts'
import type { Approval, ApprovalGate, ApprovalKey } from '../store/approval-store.ts'
import type { Standing } from '../values/standing.ts'
import type { Decider } from './tool.ts'

/** The largest length of `ApprovalRequest.message`. */
export const APPROVAL_MESSAGE_CHARS_MAX = 16_384

export interface ApprovalRequest extends ApprovalKey {
  readonly gate: ApprovalGate
  /** The procedure, the tool, or the workflow name of the program that asks. */
  readonly workflow: string
  readonly title: string
  readonly message: string
  /** See `NewApproval`. */
  readonly callHash?: string
  /** See `NewApproval`. */
  readonly owner?: string
  /** See `NewApproval`; `asker` unless given. */
  readonly decider?: Decider
  /** See `NewApproval`. */
  readonly standing?: Standing
  /** See `NewApproval`. */
  readonly sources?: readonly string[]
  /** The session of the turn whose tool call it is. The process that runs this session dispatches the decision. */
  readonly session?: string | null
  /** The keywords. When both lists are absent: `approve`, `approved`, `yes`, `lgtm` and `reject`, `rejected`, `no`. */
  readonly approveKeywords?: readonly string[]
  readonly rejectKeywords?: readonly string[]
  /** The time until the question expires; 0 for no limit. */
  readonly timeoutSecs: number
  /** The conversation that caused the question. It is always asked. */
  readonly origin?: {
    readonly channel: string
    readonly account: string
    readonly to: Address
    /** The sender who caused the question. On platforms without quotes, only replies of this sender count. */
    readonly sender?: string
  }
  /** The targets to ask; letter case is ignored. Defaults to `[approvals] channels`. */
  readonly channels?: readonly string[]
  /** Replaces the conversation that is configured for notifications. */
  readonly channelId?: string
}

/** The result for one target: its prompt is queued, the event is broadcast, or the reason why nothing can be sent. */
export interface AskedTarget {
  readonly channel: string
  readonly status: 'queued' | 'broadcast' | 'unavailable'
  readonly detail: string
  /** The numbers of the prompts in the outbox. */
  readonly outbox?: readonly number[]
}

/** The person who answers a question. */
export interface Answerer {
  readonly standing: Standing
  /** True for the person whose call it is, and for each person in a conversation that was asked about no person's call. */
  readonly isAsked: boolean
  /** The source that names this person where a text of theirs is untrusted; see `NewApproval.sources`. */
  readonly source?: string
}

/** The answer of a person, or the end of a question without one. `by` as in `Approval.by`. */
export type NewDecision =
  | { readonly state: 'approved' | 'rejected'; readonly by: string; readonly who: Answerer; readonly feedback?: string }
  | { readonly state: 'expired' | 'cancelled'; readonly by: string; readonly feedback?: string }

export interface Approvals {
  /** Opens a question and resolves when it is durable. A known key sends no further prompt and resolves to the existing approval. Throws
   * `invalid_request`, `conflict` for a key of another gate, and `unavailable` when too many questions wait. */
  open(
    question: ApprovalRequest,
  ): Promise<{ readonly opened: boolean; readonly approval: Approval; readonly asked: readonly AskedTarget[] }>
  /**
   * Decides a question and resolves when the decision is durable; its handler runs right after. The first decision wins. Throws
   * `not_found` for a key that was never opened, and `forbidden` for a person who may not decide it.
   */
  decide(key: ApprovalKey, decision: NewDecision): Promise<{ readonly won: boolean; readonly approval: Approval }>
  get(key: ApprovalKey): Promise<Approval | undefined>
  /**
   * Registers the handler of one gate's decisions. The handler is called for each decision, and again after a failure or a restart, until
   * it resolves; then the decision is announced. A gate has one handler, and decisions wait until it is registered. Returns an
   * unsubscribe function.
   */
  onDecision(gate: ApprovalGate, take: (approval: Approval) => Promise<void>): () => void
}
