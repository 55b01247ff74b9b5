/**
 * The port of durable approvals: questions to people, each decided once (docs/contract.md#approvals). A method that writes resolves
 * when its change is on stable storage.
 */
import type { Address } from '../channel/channel.ts'
import type { NewReply } from '../channel/reply.ts'
import type { Decider } from '../tool/tool.ts'
import type { Standing } from '../values/standing.ts'

/** `pending` becomes exactly one of the other states, which is final. A timeout makes it `expired`, never `approved`. */
export type ApprovalState = 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled'

/** The gate that waits: a step of a procedure, a tool call of a turn, or a program that posted an event. */
export type ApprovalGate = 'sop' | 'tool' | 'event'

/** The key of a question. `runId` is the run of a procedure, the turn, or the run of the posting program. */
export interface ApprovalKey {
  readonly runId: string
  readonly stepId: string
}

export interface NewApproval extends ApprovalKey {
  readonly gate: ApprovalGate
  /** The procedure, the tool, or the workflow of the posting program. */
  readonly workflow: string
  readonly title: string
  readonly message: string
  /** The SHA-256 of the exact tool call; absent for other questions. */
  readonly callHash?: string | null
  /** The device whose tool call it is, or `local`. Only this device and operators see and decide the approval. Absent for other questions. */
  readonly owner?: string | null
  /** The sender of the message that caused the question, where it is known. */
  readonly person?: string | null
  /** Who decides it; absent for a question of an earlier release, which the persons decide who were asked. */
  readonly decider?: Decider | null
  /** The standing of the turn that asks. A person below it does not decide. Absent where it is not known. */
  readonly standing?: Standing | null
  /** The sources of untrusted text that the model had read. A person who is one of them does not decide. */
  readonly sources?: readonly string[]
  /** The keywords in lower case; no keyword is in both lists. */
  readonly approveKeywords: readonly string[]
  readonly rejectKeywords: readonly string[]
  readonly createdAtMs: number
  /** The time when it expires; null for never. */
  readonly expiresAtMs: number | null
  /** The token in the buttons of its prompts: unguessable, at most 40 characters. */
  readonly token: string
}

/** A prompt. Replies are matched to it. */
export interface ApprovalPrompt {
  /** The number in the outbox. */
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly to: Address
  /** The platform's id of the message; null until it is sent. */
  readonly providerId: string | null
  /** The time when sending it ended; null until then, and once its row of the outbox is dropped. */
  readonly sentAtMs: number | null
}

export interface Approval extends NewApproval {
  readonly callHash: string | null
  readonly owner: string | null
  readonly person: string | null
  readonly decider: Decider | null
  readonly standing: Standing | null
  readonly sources: readonly string[]
  readonly state: ApprovalState
  /** The person or cause of the decision: `<channel>:<sender>`, `device:<id>`, `cli:<user>`, `timeout`, `system`. */
  readonly by: string | null
  /** The standing of that person; null for a cause, and for a decision of an earlier release. */
  readonly byStanding: Standing | null
  readonly feedback: string | null
  readonly decidedAtMs: number | null
  /** The time when the gate acknowledged the decision; null until then. */
  readonly acknowledgedAtMs: number | null
  readonly prompts: readonly ApprovalPrompt[]
}

export interface Decision {
  readonly state: Exclude<ApprovalState, 'pending'>
  readonly by: string
  /** As `Approval.byStanding`. */
  readonly standing?: Standing | null
  readonly feedback: string | null
  readonly atMs: number
}

export interface ApprovalFilter {
  readonly limit: number
  readonly state?: ApprovalState
  /** Only approvals of this owner. */
  readonly owner?: string
  /** Only approvals of this run or turn. */
  readonly runId?: string
  /** Only approvals that were opened before this one, for the next page. */
  readonly before?: ApprovalKey
}

export interface ApprovalStore {
  /**
   * Opens a question and queues its prompts in one commit. A known key opens nothing and resolves to the existing approval with
   * `opened: false`.
   */
  open(approval: NewApproval, prompts: readonly NewReply[]): Promise<{ readonly opened: boolean; readonly approval: Approval }>
  /**
   * Decides an approval. The first decision wins, and `won` tells whether it was this one. After its time the approval is `expired`,
   * even when nothing has recorded that yet. With `inbox`, the deciding message is done in the same commit; a late message stays
   * open, so that its sender gets a notice. Resolves to undefined for an unknown key.
   */
  decide(key: ApprovalKey, decision: Decision, inbox?: number): Promise<{ readonly won: boolean; readonly approval: Approval } | undefined>
  /** Records that the gate acknowledged the decision and queues the confirmations in the same commit, once. */
  acknowledge(key: ApprovalKey, atMs: number, replies: readonly NewReply[]): Promise<readonly number[]>
  get(key: ApprovalKey): Promise<Approval | undefined>
  /** Finds an approval in any state by the token of its buttons. */
  byToken(token: string): Promise<Approval | undefined>
  /** Lists approvals, newest first. */
  list(filter: ApprovalFilter): Promise<Approval[]>
  counts(): Promise<{ readonly pending: number }>
}

/** The approvals as the holder of a lease uses them. */
export interface OwnedApprovalStore extends ApprovalStore {
  /**
   * Lists pending approvals and decided ones that no gate has acknowledged, in the shards of the lease, oldest first, after a key.
   * `decided`: only the latter. The approval of a tool call is in the shard of its turn, any other in the shard of its `runId`.
   */
  unfinished(page: { readonly after: ApprovalKey | null; readonly limit: number; readonly decided?: true }): Promise<Approval[]>
}
