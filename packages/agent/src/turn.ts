/** One turn, as those who ask for it and those who wait for it see it. */
import type { Permit } from '@sluice/kit'
import type { ClientId, IdempotencyKey, ModelMessage, NewReply, Risk, ToolReport, Trace, Usage } from '@sluice/sdk'

/** What a listener hears while a turn runs. */
export type TurnPart =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'tool_result'; readonly id: string; readonly name: string; readonly output: string; readonly outcome: 'ok' | 'error' }

export interface ApprovalRequest {
  /** With `turn` it names the question; the same again when a turn that was cut asks anew. */
  readonly callId: string
  readonly tool: string
  /** The call as `shownCall` renders it, bounded to what an approval's message may have. */
  readonly summary: string
  /** SHA-256 of the exact call: an answer counts for this call alone. */
  readonly callHash: string
  readonly turn: string
  readonly session: string | null
  /** The inbox message the turn answers. */
  readonly inbox: number | null
  /** As in `TurnRequest.owner`. */
  readonly owner?: string
}

/**
 * Asks a person. Resolves to who agreed, as in `Approval.by`; to undefined when nobody can be asked; to false when somebody
 * refuses, or nobody answers in time: a time-out never approves.
 */
export type Approver = (request: ApprovalRequest, signal: AbortSignal) => Promise<{ readonly by: string } | false | undefined>

/** The inbox message a turn answers. The inbox has begun the attempt, and decides what a failure means. */
export interface TurnDelivery {
  readonly turnId: string
  readonly inbox: number
  /** This one included. */
  readonly attempts: number
  readonly receivedAtMs: number
  /** What an earlier attempt had produced when it was cut. */
  readonly checkpoint: readonly ModelMessage[]
  /** The reply as the channel sends it, queued in the commit that ends the turn; `trace` is the turn's span. Must not throw. */
  reply(text: string, trace: Trace): readonly NewReply[]
}

export interface TurnRequest {
  /** `webhook`, `ws`, `cli`, a channel's name. */
  readonly source: string
  /** The stored session, already in the caller's own namespace; null: no history, nothing kept but the turn. */
  readonly session: string | null
  readonly text: string
  readonly client: ClientId
  /** Who may read and abort it: a device, or `local`. */
  readonly owner?: string
  /** As in `ToolContext.caller`; absent: the owner. */
  readonly caller?: string
  /** The span that asks for it; absent: a trace begins with the turn. */
  readonly trace?: Trace | undefined
  readonly idempotency?: IdempotencyKey
  /** Ends the turn as `aborted`. */
  readonly signal?: AbortSignal
  /** Aborts once something else waits with the caller for the end of this turn; as in `ToolContext.superseded`. */
  readonly superseded?: AbortSignal
  readonly listen?: (part: TurnPart) => void
  readonly approve?: Approver
  /** The only tools it is offered and may call; absent: all. */
  readonly tools?: readonly string[]
  readonly delivery?: TurnDelivery
  /** The caller's job runs in the lane of `session` and holds this permit: the turn runs inside it, at once. */
  readonly permit?: Permit
  /** Told whenever it begins (true) or ends (false) to wait for a person; it holds no permit meanwhile, and its time does not run. */
  readonly onWait?: (isWaiting: boolean) => void
}

/** One tool call outside of any turn, under the same policy, approvals and limits. */
export interface CallRequest {
  readonly tool: string
  readonly input: unknown
  /** Stands for the turn, in approvals and in what is told. */
  readonly turn: string
  readonly callId: string
  readonly source: string
  readonly client: ClientId
  readonly caller?: string
  readonly trace: Trace
  readonly signal: AbortSignal
  /** Awaited after the policy and any person have agreed, right before the tool runs; a rejection keeps it from running. */
  readonly onBegin?: (risk: Risk) => Promise<void>
}

export interface CallResult extends ToolReport {
  readonly outcome: 'ok' | 'error'
  readonly output: string
}

export interface TurnResult {
  readonly id: string
  readonly text: string
  readonly model: string
  readonly usage: Usage
  /** Of a delivery: its replies' numbers in the outbox. */
  readonly replies: readonly number[]
}

export interface Agent {
  /**
   * Runs one turn in its session's lane. Resolves once the turn's end is durable. Rejects with `upstream`,
   * `upstream_timeout`, `aborted`, `unavailable` or `rate_limited` (budget spent). A turn with an idempotency key is kept
   * durably before it begins, as by `accept`: a crash or a stop of the daemon leaves it and its key to `resume`, and any
   * other failure has released the key before this rejects.
   * A delivery is not recorded as failed: the inbox decides about it.
   */
  run(request: TurnRequest): Promise<TurnResult>
  /** Keeps the turn durably, then resolves to its id; it runs when its turn comes, also after a crash. Rejects with `conflict` for an `id` that is known. */
  accept(
    request: Omit<TurnRequest, 'signal' | 'listen' | 'approve' | 'delivery' | 'permit' | 'onWait'> & { readonly id?: string },
  ): Promise<string>
  /** Resolves once no such turn runs or waits here; what became of it stands in the store. Never rejects. */
  ended(turnId: string): Promise<void>
  /**
   * Runs one tool. Rejects only with `aborted`, or with what `onBegin` rejected with. A drain does not know of it: who calls
   * ends it by its signal.
   */
  call(request: CallRequest): Promise<CallResult>
  /** Takes up what a crash left unfinished, at the normal concurrency. Resolves to how many there are. */
  resume(): Promise<number>
  /** Resumes a kept turn that neither runs nor waits here, as when its end could not be recorded. */
  ensureResumed(turnId: string): Promise<void>
  /** False if no such turn runs or waits, or if it is of another owner than the one that is named. */
  abort(turnId: string, owner?: string): boolean
  /** Stops taking turns, waits for the running ones, aborts those that outlast `timeoutMs`; queued durable turns stay kept. */
  drain(timeoutMs: number): Promise<void>
  readonly load: () => { readonly running: number; readonly queued: number; readonly sessions: number }
}
