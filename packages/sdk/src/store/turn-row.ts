/** A turn as the store has it. */
import type { FinishReason } from '../observe/events.ts'

export type TurnStatus = 'queued' | 'running' | 'done' | 'failed' | 'aborted'

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
  readonly error: { readonly code: string; readonly message: string } | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** The number of starts, without those after which it only continued to wait for a person. */
  readonly attempts: number
  /** The number of all starts; more than one means that a crash or stop interrupted it. 0 for a turn that was not stored. */
  readonly starts: number
  readonly createdAtMs: number
  readonly endedAtMs: number | null
  /** Data that the caller gets back when the turn resumes after a restart; JSON. */
  readonly context: unknown
}
