/** The agent's public types: requests, results and the parts of a turn. */
import type { Permit } from '@sluice/kit'
import type {
  ClientId,
  Decider,
  FinishReason,
  IdempotencyKey,
  MarkedFile,
  ModelMessage,
  NewReply,
  OwnedStore,
  Risk,
  Standing,
  StoreChange,
  ToolReport,
  Trace,
  TurnRow,
  Usage,
  UsedFiles,
} from '@sluice/sdk'
import type { ModelTestReport, ModelTestRequest } from '../model-test/report.ts'
import type { LimitedClient } from './admission.ts'
import type { ResumableHome } from './turn-home.ts'

/** A part of a running turn, as listeners receive it. */
export type TurnPart =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly type: 'tool_result'; readonly id: string; readonly name: string; readonly output: string; readonly outcome: 'ok' | 'error' }

export interface ToolApprovalRequest {
  /** Together with `turn`, the key of the question. A resumed turn asks with the same key. */
  readonly callId: string
  readonly tool: string
  /** The call as `shownCall` renders it, limited to the length of an approval's message. */
  readonly summary: string
  /** The SHA-256 of the exact call. A decision applies to this call only. */
  readonly callHash: string
  /** The source of the untrusted text because of which a person is asked. */
  readonly untrusted?: string
  /** Who decides: `operator` also for a principal that decides no call. */
  readonly decider: Decider
  /** The standing of the turn. */
  readonly standing: Standing
  /** The sources of the untrusted text that the model has read. */
  readonly sources: readonly string[]
  /** The agent whose call it is. */
  readonly agent: string
  readonly turn: string
  readonly session: string | null
  /** The inbox message that the turn answers; null for other turns. */
  readonly inbox: number | null
  /** The owner, as in `TurnRequest.owner`. */
  readonly owner?: string
  /** As in `TurnRequest`. */
  readonly asksOwner?: boolean
}

/** The person who approved, as in `Approval.by` and `Approval.byStanding`. */
export interface ApprovedBy {
  readonly by: string
  readonly standing: Standing | null
}

/**
 * Asks a person. Resolves to the person who approved; to undefined without a person to ask; to false when a person rejects or the
 * time is over. A timeout never approves.
 */
export type Approver = (request: ToolApprovalRequest, signal: AbortSignal) => Promise<ApprovedBy | false | undefined>

/** Words that the person of a turn has written since it began. */
export interface FurtherWords {
  readonly text: string
  /** When it was written. */
  readonly atMs: number
  /**
   * Stores these messages as the checkpoint of the turn, and ends the messages of the person in the same commit. Resolves to false, and
   * changes nothing, when one of them was edited or deleted meanwhile.
   */
  take(messages: readonly ModelMessage[]): Promise<boolean>
  /** Returns the signal that replaces `TurnRequest.superseded` once the words are taken. */
  superseded(): AbortSignal | undefined
}

/** The inbox message that a turn answers. The inbox worker has begun the attempt and decides what follows a failure. */
export interface TurnDelivery {
  /** The store under the lease that the message is processed under. */
  readonly owned: OwnedStore
  readonly turnId: string
  readonly inbox: number
  /** The number of attempts, with this one. */
  readonly attempts: number
  readonly receivedAtMs: number
  /** The checkpoint of an interrupted attempt; empty without one. */
  readonly checkpoint: readonly ModelMessage[]
  /** Resolves to the person's words since the last step, for the next one; undefined for nothing. Absent: it waits for the next turn. */
  furtherWords?(): Promise<FurtherWords | undefined>
  /**
   * Makes the replies that the commit of the turn's end queues. `files` has the ones that the text marks; `trace` is the span of the turn.
   * Must not throw.
   */
  reply(text: string, files: readonly MarkedFile[], trace: Trace): readonly NewReply[]
}

export interface TurnRequest {
  /** The origin: `webhook`, `ws`, `cli`, the name of a channel, or `call` for a tool call without a model (`direct-call.ts`). */
  readonly source: string
  /** The id of the stored session, in the namespace of the caller; null for a turn without history. Its key names the agent. */
  readonly session: string | null
  /** The agent of a turn without a session; `main` when absent. */
  readonly agent?: string
  readonly text: string
  /** The label of the model to begin with, such as `openai:gpt-5`; the first one when absent or not configured. */
  readonly model?: string
  readonly client: ClientId
  /** The device that may read and abort the turn, or `local`. */
  readonly owner?: string
  /** The caller, without the agent; the owner when absent. */
  readonly caller?: string
  /** The principal of the turn, whose limits it keeps. Absent: no limit applies, and the standing is that of the owner, as for procedures. */
  readonly limited?: LimitedClient
  /** The span that requests the turn; a new trace begins when absent. */
  readonly trace?: Trace | undefined
  readonly idempotency?: IdempotencyKey
  /** Called with the id of the turn before it waits or runs. Must not throw. */
  readonly onId?: (id: string) => void
  /** Aborts the turn. */
  readonly signal?: AbortSignal
  /** Aborts when the caller has a newer message that waits for this turn, as in `ToolContext.superseded`. */
  readonly superseded?: AbortSignal
  readonly listen?: (part: TurnPart) => void
  readonly approve?: Approver
  /** True: questions wait for the device of the turn, which answers over the API, also after a restart. */
  readonly asksOwner?: boolean
  /** The only tools that the turn may call; all tools when absent. */
  readonly tools?: readonly string[]
  /** Whether the turn may end with the deliberate silence `silent`, which sends nothing. The prompt says how. */
  readonly maySilent?: boolean
  readonly delivery?: TurnDelivery
  /** True: several people read the answer, so that no memory of one person is recalled. */
  readonly isInRoom?: boolean
  /** The permit of the caller's job in the lane of `session`. The turn runs at once inside this job. */
  readonly permit?: Permit
  /** Called when the turn begins (true) or ends (false) to wait for a person. Meanwhile it holds no permit and its time limit is paused. */
  readonly onWait?: (isWaiting: boolean) => void
}

/** A tool call outside of a turn, under the same policy, approvals and limits. */
export interface CallRequest {
  readonly tool: string
  readonly input: unknown
  /** The id that replaces the turn's id in approvals and events. */
  readonly turn: string
  readonly callId: string
  readonly source: string
  /** The agent that makes the call; `main` when absent. */
  readonly agent?: string
  readonly client: ClientId
  readonly caller?: string
  /** As in `ToolContext`. */
  readonly standing: Standing
  readonly trace: Trace
  readonly signal: AbortSignal
  /** Awaited right before the tool runs, after the policy and any approval. A rejection prevents the run. */
  readonly onBegin?: (risk: Risk) => Promise<void>
}

export interface CallResult extends ToolReport {
  /** The files of the workspace that the call used. */
  readonly files?: UsedFiles
  readonly outcome: 'ok' | 'error'
  readonly output: string
  /** How to read on where the output is cut. */
  readonly readOn?: string
  /** The source of the output when others may have written it. The model gets such an output framed. */
  readonly untrusted?: string
}

export interface TurnResult {
  readonly id: string
  readonly text: string
  readonly model: string
  readonly finishReason: FinishReason
  readonly usage: Usage
  /** The numbers of the replies in the outbox; empty without a delivery. */
  readonly replies: readonly number[]
}

/** A turn that waits or runs in this process. */
export interface RunningTurn extends TurnRow {
  readonly status: 'queued' | 'running'
  /** Whether it waits for a person. */
  readonly isAsking: boolean
}

export interface Agent {
  /**
   * Runs one turn in its session's lane and resolves when the end of the turn is durable. Rejects with `upstream`,
   * `upstream_timeout`, `aborted`, `unavailable` or `rate_limited` (spending limit). A turn with an idempotency key is stored before
   * it begins, as by `accept`: after a crash or stop, `resume` continues it with its key; any other failure releases the key before
   * the rejection. `rate_limited` also means a limit of the client, which refuses the turn before it is stored. A failed delivery is not recorded, because the inbox worker decides about it.
   */
  run(request: TurnRequest): Promise<TurnResult>
  /** Stores the turn and resolves to its id. The turn runs later, also after a crash, then without its listener. Rejects with `conflict` for a known `id`. */
  accept(request: Omit<TurnRequest, 'signal' | 'approve' | 'delivery' | 'permit' | 'onWait'> & { readonly id?: string }): Promise<string>
  /** Resolves when the turn neither runs nor waits here; the store has its end. Never rejects. */
  ended(turnId: string): Promise<void>
  /**
   * Runs one tool. Rejects only with `aborted`, as `onBegin` does, or with `unavailable` when a person cannot be asked now. `drain` does not
   * wait for it: the caller ends it by its signal.
   */
  call(request: CallRequest): Promise<CallResult>
  /**
   * Tests the model of an entry, and reports each result when it is known. Its cost counts for the budget and is recorded, like that of
   * a turn. Rejects with `rate_limited` when the budget is used up, with `not_found` for an unknown agent or entry, with `config_invalid`
   * when the provider cannot be used, and with the reason of `signal`. `drain` does not wait for it.
   */
  testModel(request: ModelTestRequest): Promise<ModelTestReport>
  /**
   * Resumes the interrupted turns of these shards at the normal concurrency, until the lease is lost. Resolves to their number. A
   * turn under a lost lease ends with `unavailable` and without a record; its next owner resumes it if it is stored.
   */
  resume(home: ResumableHome): Promise<number>
  /** Resumes no more turns of these shards. Resolves once the turns that wait or run here have ended. */
  leave(home: ResumableHome): Promise<void>
  /** Follows a change that another process made: requests to abort turns of this process, and the ends of turns of others. */
  look(change: StoreChange): Promise<void>
  /** Resumes a stored turn that neither runs nor waits here, such as when its end could not be recorded. */
  ensureResumed(turnId: string): Promise<void>
  /** Aborts a turn. Returns false when it neither runs nor waits, or when it belongs to another owner than `owner`. */
  abort(turnId: string, owner?: string): boolean
  /** Aborts a turn wherever it runs, as `abort` does. Another process gets the request through the store. */
  requestAbort(turnId: string, owner?: string): Promise<boolean>
  /** Accepts no more turns, waits for the running ones and aborts them after `timeoutMs`. Stored turns resume after the next start. */
  drain(timeoutMs: number): Promise<void>
  /** Lists the turns that wait or run in this process, the newest first. */
  readonly live: () => readonly RunningTurn[]
  readonly load: () => { readonly running: number; readonly queued: number; readonly sessions: number }
}
