/** The port of metrics and tracing: observers are told of finished work and never asked before it. */
import type { ApprovalState } from './approval-store.ts'
import type { Trace } from './trace.ts'

export interface Span {
  readonly trace: Trace
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number
  readonly tookMs: number
}

export type Outcome = 'ok' | 'error' | 'aborted'

/** Each finished piece of work. Names in it come from closed sets, such as route templates and registered tools, and are safe as labels. */
export type Observation =
  | { readonly kind: 'request'; readonly method: string; readonly route: string; readonly status: number; readonly span: Span }
  | { readonly kind: 'rate_limited'; readonly route: string }
  | {
      readonly kind: 'turn'
      readonly source: string
      readonly provider: string
      readonly model: string
      readonly outcome: Outcome
      readonly iterations: number
      readonly span: Span
    }
  | {
      readonly kind: 'model_call'
      readonly provider: string
      readonly model: string
      readonly outcome: Outcome
      readonly inputTokens: number
      readonly outputTokens: number
      readonly costUsd: number
      readonly span: Span
    }
  | { readonly kind: 'tool_call'; readonly tool: string; readonly outcome: Outcome; readonly span: Span }
  | {
      readonly kind: 'delivery'
      readonly channel: string
      readonly direction: 'inbound' | 'outbound'
      /** The message's number in the inbox or outbox. */
      readonly number: number
      readonly outcome: Outcome
      readonly span: Span
    }
  | {
      readonly kind: 'ingress'
      readonly channel: string
      /** What became of a request; `refused`: for want of room, the provider will come back. */
      readonly verdict: 'kept' | 'duplicate' | 'denied' | 'ignored' | 'unauthorized' | 'refused'
      /** False: the channel has no secret, so that nothing was proved. */
      readonly signed: boolean
      /** While an observer traces. */
      readonly span?: Span
    }
  /** A run of a procedure has ended, or a trigger started none. */
  | {
      readonly kind: 'sop_run'
      readonly sop: string
      readonly outcome: 'completed' | 'failed' | 'cancelled' | 'skipped'
      /** Of a run that was started. */
      readonly span?: Span
    }
  /** A step of a run has ended; from the start of its last attempt. */
  | {
      readonly kind: 'sop_step'
      readonly sop: string
      readonly step: number
      readonly outcome: 'completed' | 'failed' | 'skipped'
      readonly span: Span
    }
  /** An approval was decided, and its gate has taken the decision. */
  | { readonly kind: 'approval'; readonly state: Exclude<ApprovalState, 'pending'> }
  | { readonly kind: 'commit'; readonly units: number; readonly tookMs: number }
  | { readonly kind: 'error'; readonly component: string }

export interface Observer {
  /** The value of `[observability] backend` that turns it on. */
  readonly name: string
  /** Must not throw and must not block; what needs time is queued, bounded. */
  record(observation: Observation): void
  /** True: it wants whole traces, so that contexts are kept with messages and passed on to other programs. */
  readonly traces?: true
  /** The body of `GET /metrics`, for the one observer that has it. */
  render?(): Promise<{ readonly contentType: string; readonly body: string }>
  /** True: only loopback peers may read `render`. */
  readonly loopbackOnly?: boolean
}

/** Figures of the running daemon, read when asked for. */
export interface Vitals {
  readonly startedAtMs: number
  readonly turnsRunning: number
  readonly turnsQueued: number
  readonly sessionsActive: number
  readonly sseClients: number
  readonly wsClients: number
  /** Messages that wait for their turn, and replies that wait to be sent. */
  readonly messagesPending: number
  readonly repliesPending: number
  readonly oldestMessageSecs: number
  readonly oldestReplySecs: number
  readonly commitsQueued: number
  readonly eventsDropped: number
  /** What confines commands, as it was measured; null until it has been. */
  readonly sandbox: { readonly backend: string; readonly detail: string } | null
}
