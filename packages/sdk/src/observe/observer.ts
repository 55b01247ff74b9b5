/** The port of metrics and tracing. Observers receive finished work and cannot influence it. */

import type { ApprovalState } from '../store/approval-store.ts'
import type { Trace } from '../values/trace.ts'
import type { NoticeKind, SluiceEvent } from './events.ts'

export interface Span {
  readonly trace: Trace
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number
  readonly tookMs: number
}

export type Outcome = 'ok' | 'error' | 'aborted'

/** A finished piece of work. Its names come from closed sets, such as route templates and registered tools, and are safe as labels. */
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
      /** The number of the message in the inbox or outbox. */
      readonly number: number
      readonly outcome: Outcome
      readonly span: Span
    }
  /** A reply is sent again although it may have arrived, or its platform reported later that it did not deliver it. */
  | { readonly kind: 'reply'; readonly channel: string; readonly what: 'repeated' | 'undelivered' }
  | {
      readonly kind: 'ingress'
      readonly channel: string
      /** The outcome of a request; `refused` for lack of room, so that the platform repeats it. */
      readonly verdict: 'kept' | 'duplicate' | 'denied' | 'ignored' | 'unauthorized' | 'refused'
      /** False when the channel has no secret, so that the request was not verified. */
      readonly signed: boolean
      /** Present while an observer traces. */
      readonly span?: Span
    }
  /** A run of a procedure has ended, a limit holds it back, or a trigger started none. */
  | {
      readonly kind: 'sop_run'
      readonly sop: string
      readonly outcome: 'completed' | 'failed' | 'cancelled' | 'waiting' | 'expired' | 'skipped'
      /** The time of the run; absent when it has not begun. */
      readonly span?: Span
    }
  /** A step of a run has ended. The time counts from the start of its last attempt. */
  | {
      readonly kind: 'sop_step'
      readonly sop: string
      readonly step: number
      readonly outcome: 'completed' | 'failed' | 'skipped'
      readonly span: Span
    }
  /** An approval was decided, and its gate has acknowledged the decision. */
  | { readonly kind: 'approval'; readonly state: Exclude<ApprovalState, 'pending'> }
  /** A client has reached a limit, or a conversation was paused. */
  | { readonly kind: 'limit'; readonly cause: Extract<SluiceEvent, { readonly type: 'limit_reached' }>['limit'] | 'loop' }
  /** Operators got a notice of a kind of `[notify]`. */
  | { readonly kind: 'notice'; readonly notice: NoticeKind }
  | { readonly kind: 'commit'; readonly units: number; readonly tookMs: number }
  | { readonly kind: 'error'; readonly component: string }

export interface Observer {
  /** The value of `[observability] backend` that turns the observer on. */
  readonly name: string
  /** Must not throw or block. Slow work belongs in a bounded queue. */
  record(observation: Observation): void
  /** True when the observer needs whole traces: contexts are then stored with messages and passed on to other programs. */
  readonly traces?: true
  /** Returns the body of `GET /metrics`, for the one observer that has it. */
  render?(): Promise<{ readonly contentType: string; readonly body: string }>
  /** True when only loopback peers may read `render`. */
  readonly loopbackOnly?: boolean
}

/** Figures of the running daemon, collected on request. */
export interface Vitals {
  readonly version: string
  /** The name of the build, such as `full`. */
  readonly profile: string
  readonly startedAtMs: number
  readonly turnsRunning: number
  readonly turnsQueued: number
  readonly sessionsActive: number
  readonly sseClients: number
  readonly wsClients: number
  /** The messages that wait for a turn and the replies that wait to be sent. */
  readonly messagesPending: number
  readonly repliesPending: number
  readonly oldestMessageSecs: number
  readonly oldestReplySecs: number
  readonly commitsQueued: number
  /** Present on a node of a cluster. */
  readonly cluster?: {
    readonly name: string
    readonly node: string
    /** The nodes that share the shards, as this one has seen last. */
    readonly workers: number
    readonly shardsOwned: number
    readonly shardsShare: number
    /** The time since the database took a sign of life of this node. Work stops before 6 seconds have passed. */
    readonly beatAgeSecs: number
    /** How far the clock of this node is ahead of that of the database; null until it is known. */
    readonly clockOffsetSecs: number | null
  }
  readonly eventsDropped: number
  readonly channels: readonly Connection[]
  /** Other connections that features keep open, such as the one to an MQTT broker. */
  readonly links: readonly Connection[]
  /** When the last backup was complete, in milliseconds since 1970; null if there was none. */
  readonly lastBackupMs: number | null
  /**
   * True: the store takes no writes, the configuration file is not valid, the provider of the model did not answer, or the last attempt
   * to make a backup failed.
   */
  readonly faults: { readonly store: boolean; readonly config: boolean; readonly provider: boolean; readonly backup: boolean }
  /** The sandbox that confines commands, as measured; null before the first measurement. */
  readonly sandbox: {
    readonly backend: string
    /** `fallback`: commands run in another sandbox than the configuration names; `refusing`: no command runs. */
    readonly state: 'confined' | 'fallback' | 'unconfined' | 'refusing'
    readonly detail: string
  } | null
}

/** A connection or channel and its state. */
export interface Connection {
  readonly name: string
  readonly state: 'ok' | 'connecting' | 'degraded' | 'down'
}

/** The unfinished and failed work in the store. */
export interface Backlog {
  readonly messagesPending: number
  /** The age of the oldest message that waits; null if none does. */
  readonly oldestMessageSecs: number | null
  readonly repliesPending: number
  readonly oldestReplySecs: number | null
  readonly messagesDead: number
  readonly repliesDead: number
  readonly repliesAmbiguous: number
  readonly approvalsPending: number
  /** Runs of procedures that a limit holds back. */
  readonly runsWaiting: number
  readonly oldestRunSecs: number | null
}
