/** A turn as the store has it. */
import type { FinishReason } from '../observe/events.ts'
import type { Outcome } from '../observe/observer.ts'

export type TurnStatus = 'queued' | 'running' | 'done' | 'failed' | 'aborted'

/** A model call or a tool call of a turn, without any text of its messages. */
export interface TurnStep {
  readonly kind: 'model' | 'tool'
  /** The tool, or the model as `<provider>:<model>`. */
  readonly name: string
  readonly atMs: number
  readonly tookMs: number
  readonly outcome: Outcome
  /** How the reply of a model ended. */
  readonly finish?: string
  /** Why a model gave no reply, or one that cannot be used. */
  readonly error?: string
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly costUsd?: number
}

/** Why a turn has no answer. */
export interface TurnError {
  readonly code: string
  readonly message: string
  /** As in `AppError`: no repetition can succeed. */
  readonly refusedFor?: string
  /** As in `AppError`: a repetition may succeed after any number of failures. */
  readonly isPassing?: true
}

export interface TurnRow {
  readonly id: string
  /** The agent of the turn; `main`, or a name of `[agents.<name>]`. */
  readonly agent: string
  readonly sessionId: string | null
  /** The client of the turn; null when it is unknown. */
  readonly owner: string | null
  readonly source: string
  readonly status: TurnStatus
  readonly input: string
  readonly response: string | null
  readonly model: string | null
  /** How the answer ended; null for a turn without an answer. */
  readonly finishReason: FinishReason | null
  readonly error: TurnError | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** The number of starts, without those after which it only continued to wait for a person. */
  readonly attempts: number
  /** The number of all starts; more than one means that a crash or stop interrupted it. 0 for a turn that was not stored. */
  readonly starts: number
  readonly createdAtMs: number
  readonly endedAtMs: number | null
  /** The number of the inbox message that the turn answers; null for other turns. */
  readonly inbox: number | null
  /** The newest steps since the last start of the turn, oldest first; empty for an unfinished turn. */
  readonly steps: readonly TurnStep[]
  /** Data that the caller gets back when the turn resumes after a restart; JSON. */
  readonly context: unknown
}
