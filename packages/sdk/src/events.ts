/** Everything subscribers of `/api/events` and `/ws/events` can see (§6): one union, one producer, one envelope. */
import type { ApprovalState } from './approval-store.ts'
import type { SopRunStatus, SopStepResult, TriggerKind } from './sop.ts'

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/** What happened. `type` is the discriminator; members are JSON and hold no secret, and no message text but that of channel events and approvals. */
export type SluiceEvent =
  | { readonly type: 'turn_started'; readonly turn_id: string; readonly session_id: string | null; readonly source: string }
  | {
      readonly type: 'turn_completed'
      readonly turn_id: string
      readonly session_id: string | null
      readonly source: string
      readonly model: string
      readonly took_ms: number
      readonly input_tokens: number
      readonly output_tokens: number
      readonly cost_usd: number
    }
  | {
      readonly type: 'turn_failed'
      readonly turn_id: string
      readonly session_id: string | null
      readonly source: string
      readonly code: string
      readonly error: string
    }
  | { readonly type: 'tool_started'; readonly turn_id: string; readonly session_id: string | null; readonly tool: string }
  | {
      readonly type: 'tool_completed'
      readonly turn_id: string
      readonly session_id: string | null
      readonly tool: string
      readonly outcome: 'ok' | 'error'
      readonly took_ms: number
    }
  /** `POST /api/channel-events`, the posted body verbatim. */
  | { readonly type: 'channel_event'; readonly payload: Readonly<Record<string, unknown>> }
  | { readonly type: 'config_reloaded'; readonly sections: readonly string[]; readonly rebuilt: readonly string[] }
  | { readonly type: 'config_rejected'; readonly error: string }
  | { readonly type: 'feature_failed'; readonly feature: string; readonly error: string }
  /** What became of a message that came in, or of one that went out; the numbers are those of inbox and outbox. */
  | {
      readonly type: 'delivery'
      readonly direction: 'inbound' | 'outbound'
      readonly channel: string
      readonly number: number
      readonly state: 'sent' | 'ambiguous' | 'dead'
      readonly error: string | null
    }
  | {
      readonly type: 'channel_health'
      readonly channel: string
      readonly state: 'ok' | 'connecting' | 'down'
      readonly detail: string | null
    }
  /** A question to people (§6); `title` and `message` are what they are asked. */
  | {
      readonly type: 'human_approval_request'
      readonly run_id: string
      readonly step_id: string
      readonly workflow_name: string
      readonly title: string
      readonly message: string
      /** RFC 3339; null: it waits for ever. */
      readonly expires_at: string | null
    }
  /** Told once the gate has taken the decision. */
  | {
      readonly type: 'human_approval_resolved'
      readonly run_id: string
      readonly step_id: string
      readonly approved: boolean
      readonly state: Exclude<ApprovalState, 'pending'>
      readonly feedback: string | null
      readonly by: string
    }
  | {
      readonly type: 'sop_run'
      readonly run_id: string
      readonly sop: string
      readonly status: SopRunStatus
      readonly step: number
      readonly steps: number
      readonly reason: string | null
    }
  | {
      readonly type: 'sop_step'
      readonly run_id: string
      readonly sop: string
      readonly step: number
      readonly status: 'started' | SopStepResult['status']
    }
  | { readonly type: 'sop_skipped'; readonly sop: string; readonly source: TriggerKind; readonly reason: string }
  | { readonly type: 'sops_reloaded'; readonly loaded: number; readonly broken: number }
  | { readonly type: 'device_paired'; readonly device_id: string; readonly name: string }
  | { readonly type: 'device_revoked'; readonly device_id: string }
  /** An embedder's own. */
  | { readonly type: `x_${string}`; readonly [member: string]: unknown }

export type EventType = SluiceEvent['type']

/** An event as subscribers get it. `id` grows by one inside one run of the daemon: `<run>-<number>`. */
export type EventEnvelope = SluiceEvent & { readonly id: string; readonly timestamp: string }

export interface Events {
  emit(event: SluiceEvent): void
}
