/** The words of standard operating procedures (§2.4, §4.3): what starts one, what it is, how a run of it stands. All JSON. */
import type { Address } from './channel.ts'
import type { IdempotencyKey } from './store.ts'

export type SopMode = 'auto' | 'supervised' | 'step_by_step' | 'priority_based' | 'deterministic'
export type SopPriority = 'low' | 'normal' | 'high' | 'critical'
export type TriggerKind = 'manual' | 'webhook' | 'cron' | 'mqtt' | 'peripheral'

/** Something that happened, for every procedure with a trigger that matches. */
export interface SopEvent {
  readonly source: TriggerKind
  /** The request path, the broker's topic, `<board>/<signal>`, the cron expression; for `manual`: the procedure's name. */
  readonly topic: string
  /** As it came: JSON, or any text. Never trusted. */
  readonly payload: string | null
  readonly atMs: number
  /** Who caused it: `device:<id>`, `<channel>:<sender>`, `cli:<user>`, `turn:<id>`, `broker`, `clock`. */
  readonly by: string
  /** An event of a key that is known starts nothing and gets the answer of the first; absent: it is never a repeat. */
  readonly key?: string
  /** The span it happened in, as `formatTraceContext` writes it. */
  readonly trace?: string
  /** How many runs in a row led to it, each started from a step of the one before; absent: none. */
  readonly depth?: number
  /** The conversation it came from: approvals are asked for there, too. */
  readonly origin?: {
    readonly channel: string
    readonly account: string
    readonly to: Address
    /** Who wrote there what led to it: see `Question.origin`. */
    readonly sender?: string
  }
}

/** What became of an event for one procedure that matches. */
export type SopDispatch =
  | { readonly sop: string; readonly status: 'started'; readonly runId: string }
  | { readonly sop: string; readonly status: 'skipped'; readonly reason: string }

export interface SopStep {
  /** From 1, without gaps. */
  readonly number: number
  readonly title: string
  readonly body: string
  /** The only tools the step may use; null: every tool. A deterministic step calls exactly one. */
  readonly tools: readonly string[] | null
  readonly requiresConfirmation: boolean
  readonly kind: 'execute' | 'checkpoint'
  /** Of a deterministic step: the tool's input, texts `$.a.b` and `$event.a` replaced from the output before and the payload; null: that output. */
  readonly input: unknown
  /** The JSON Schema its output must fit; null: anything. */
  readonly output: unknown
}

export type SopRunStatus = 'running' | 'waiting_approval' | 'paused_checkpoint' | 'completed' | 'failed' | 'cancelled'

export interface SopStepResult {
  readonly step: number
  readonly status: 'completed' | 'failed' | 'skipped'
  /** Text; of a deterministic step, `value` is what it says as JSON. */
  readonly output: string
  readonly value?: unknown
  readonly startedAtMs: number
  readonly endedAtMs: number
}

/** What a run waits for. */
export interface SopGate {
  /** With the run's id, the key of its approval; never used twice in one run. */
  readonly stepId: string
  readonly sinceMs: number
  /** `again`: the step was cut by a stop and may have had its effect. */
  readonly why: 'mode' | 'confirmation' | 'checkpoint' | 'again'
}

/** One run, with the definition as it was when it started. */
export interface SopRun {
  readonly id: string
  readonly sop: string
  readonly version: string
  readonly description: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly steps: readonly SopStep[]
  readonly event: SopEvent
  readonly status: SopRunStatus
  /** The step that is next, runs or waits; from 1. */
  readonly step: number
  readonly gate: SopGate | null
  /** Gates so far. */
  readonly gates: number
  /** The attempt that is under way, or was when the run was cancelled: its turn, or a tool call with effects that has begun; null: none. */
  readonly attempt: { readonly turnId: string | null; readonly number: number; readonly startedAtMs: number } | null
  /** What the agent said of the step while its turn ran; the turn's end makes it count. */
  readonly report: { readonly status: SopStepResult['status']; readonly output: string } | null
  readonly results: readonly SopStepResult[]
  readonly startedAtMs: number
  readonly endedAtMs: number | null
  /** Why it failed or was cancelled. */
  readonly reason: string | null
}

export const SOP_ENDED: readonly SopRunStatus[] = ['completed', 'failed', 'cancelled']

/** What a caller without a definition in hand is shown of a procedure. */
export interface SopSummary {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly steps: number
  /** `webhook:/deploy`, `cron:0 9 * * *`, … */
  readonly triggers: readonly string[]
  readonly activeRuns: number
}

/** The engine, as features and the gateway see it. Everything that starts or changes a run is durable once it resolves. */
export interface Sops {
  /** True if a trigger names it exactly; conditions are not looked at. For deciding whether to take a request. */
  matches(source: TriggerKind, topic: string): boolean
  /** Resolves once every change of the folder of procedures noticed so far is loaded. */
  settled(): Promise<void>
  /** Starts every procedure that matches, each once; `[]`: none does. Marks `idempotency` done, and the inbox message too. */
  fire(event: SopEvent, also?: { readonly idempotency?: IdempotencyKey; readonly inbox?: number }): Promise<readonly SopDispatch[]>
  /** Starts one by its name, whatever its triggers. Throws `not_found`, or `conflict` when a limit holds it back. */
  run(name: string, event: Omit<SopEvent, 'source' | 'topic'>): Promise<string>
  list(): readonly SopSummary[]
  /** The topics of the loaded triggers of a kind, as they are written. */
  topics(kind: TriggerKind): readonly string[]
  /** Calls back after definitions were loaded anew. Returns the way out. */
  onReload(callback: () => void): () => void
  runs(filter: { readonly limit: number; readonly sop?: string; readonly active?: boolean }): Promise<readonly SopRun[]>
  get(runId: string): Promise<SopRun | undefined>
  /** What the agent says of the step its turn works on. Throws `conflict` for any other turn. */
  report(runId: string, turnId: string, report: { readonly status: SopStepResult['status']; readonly output: string }): Promise<SopRun>
  /** A person lets a waiting run go on. Throws `not_found`, or `conflict` when it does not wait. */
  approve(runId: string, by: string): Promise<SopRun>
  /** Throws `not_found`, or `conflict` when it has ended. */
  cancel(runId: string, by: string, reason: string): Promise<SopRun>
}
