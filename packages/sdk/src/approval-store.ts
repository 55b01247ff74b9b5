/**
 * The port of approvals: questions to people that outlive the process, each answered once. As everywhere in the store, a
 * method that writes resolves once its change is on stable storage.
 */
import type { Address } from './channel.ts'
import type { NewReply } from './delivery-store.ts'

/** `pending` becomes exactly one of the others, and then never changes. A time-out makes it `expired`, never `approved`. */
export type ApprovalState = 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled'

/** Who waits for the answer: a step of a procedure, a tool call of a turn, or a program that posted an event. */
export type ApprovalGate = 'sop' | 'tool' | 'event'

/** One question; `runId` names the run of a procedure, the turn, or what the posting program calls its run. */
export interface ApprovalKey {
  readonly runId: string
  readonly stepId: string
}

export interface NewApproval extends ApprovalKey {
  readonly gate: ApprovalGate
  /** The procedure, the tool, or what the posting program calls its workflow. */
  readonly workflow: string
  readonly title: string
  readonly message: string
  /** SHA-256 of the exact tool call that is decided; absent for what is no tool call. */
  readonly callHash?: string | null
  /** The device whose tool call it is, or `local`: besides the operator, only it sees and decides the approval. Absent: no device's. */
  readonly owner?: string | null
  /** Whom it concerns, where that is known: the sender of the message that led to it. */
  readonly person?: string | null
  /** Lower case, none in both lists. */
  readonly approveKeywords: readonly string[]
  readonly rejectKeywords: readonly string[]
  readonly createdAtMs: number
  /** Null: it waits for ever. */
  readonly expiresAtMs: number | null
  /** Names it in the buttons of its prompts: unguessable, at most 40 characters. */
  readonly token: string
}

/** A message that asks; answers are recognised by it. */
export interface ApprovalPrompt {
  /** In the outbox. */
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly to: Address
  /** The provider's id of the message; null until it is sent. */
  readonly providerId: string | null
}

export interface Approval extends NewApproval {
  readonly callHash: string | null
  readonly owner: string | null
  readonly person: string | null
  readonly state: ApprovalState
  /** Who decided: `<channel>:<sender>`, `device:<id>`, `cli:<user>`, `timeout`, `system`. */
  readonly by: string | null
  readonly feedback: string | null
  readonly decidedAtMs: number | null
  /** When the gate had taken the decision; null until then. */
  readonly settledAtMs: number | null
  readonly prompts: readonly ApprovalPrompt[]
}

export interface Decision {
  readonly state: Exclude<ApprovalState, 'pending'>
  readonly by: string
  readonly feedback: string | null
  readonly atMs: number
}

export interface ApprovalFilter {
  readonly limit: number
  readonly state?: ApprovalState
  /** Only those of this owner. */
  readonly owner?: string
  /** Only those made before this one: the page after one that ended there. */
  readonly before?: ApprovalKey
}

export interface ApprovalStore {
  /**
   * Opens a question and queues its prompts in one commit. A key that is known opens nothing: it resolves to what is there,
   * with `opened: false`.
   */
  open(approval: NewApproval, prompts: readonly NewReply[]): Promise<{ readonly opened: boolean; readonly approval: Approval }>
  /**
   * The first decision wins: `won` tells whether it was this one. An answer that is given when the time is over is none: by
   * then the approval is `expired`, noticed or not. With `inbox`, the message that decides is done in the same commit; a message
   * that came too late stays open, so that its sender can be told. Undefined for a key that was never opened.
   */
  decide(key: ApprovalKey, decision: Decision, inbox?: number): Promise<{ readonly won: boolean; readonly approval: Approval } | undefined>
  /** The gate has taken the decision: queues what is said about it in the same commit; nothing if that was done before. */
  settle(key: ApprovalKey, atMs: number, replies: readonly NewReply[]): Promise<readonly number[]>
  get(key: ApprovalKey): Promise<Approval | undefined>
  /** By the token of its buttons, whatever its state. */
  byToken(token: string): Promise<Approval | undefined>
  /** Newest first. */
  list(filter: ApprovalFilter): Promise<Approval[]>
  /** Pending, and decided but not settled: what a start takes up. `decided`: only the latter. Oldest first, after a key. */
  unsettled(page: { readonly after: ApprovalKey | null; readonly limit: number; readonly decided?: true }): Promise<Approval[]>
  counts(): Promise<{ readonly pending: number }>
}
