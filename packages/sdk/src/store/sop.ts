/** The types of procedures: events, steps, runs and the engine. All data is JSON (docs/contract.md#procedures). */
import type { Address } from '../channel/channel.ts'
import type { Secret } from '../values/secret.ts'
import { parseChatSession } from '../values/session-key.ts'
import { isAtLeast, type Standing } from '../values/standing.ts'
import type { WebhookAuth } from '../webhook/webhook-scheme.ts'
import type { IdempotencyKey } from './idempotency.ts'

export type SopMode = 'auto' | 'supervised' | 'step_by_step' | 'priority_based' | 'deterministic'
export type SopPriority = 'low' | 'normal' | 'high' | 'critical'
export type TriggerKind = 'manual' | 'webhook' | 'cron' | 'mqtt' | 'peripheral'

/** An event that starts every procedure with a matching trigger. */
export interface SopEvent {
  readonly source: TriggerKind
  /** The request path, the topic of the broker, `<board>/<signal>`, the cron expression, or for `manual` the name of the procedure. */
  readonly topic: string
  /** The payload as received: JSON or any text. It is never trusted. */
  readonly payload: string | null
  /** The headers of a request that its triggers read, with names in lower case; never a credential. */
  readonly headers?: Readonly<Record<string, string>>
  readonly atMs: number
  /** The cause: `device:<id>`, `<channel>:<sender>`, `cli:<user>`, `turn:<id>`, `broker`, `clock`. */
  readonly by: string
  /** The standing of the cause. A webhook trigger without `auth` matches only from its `role` on. Absent: the cause proves nothing. */
  readonly standing?: Standing
  /** The person who starts the run, as in `ToolContext.caller`. Absent for an event that no person starts, whose runs are for operators. */
  readonly starter?: string
  /** The session of the tool call that starts the run; absent for a run that no tool starts. */
  readonly session?: string
  /** An event with a known key starts nothing and gets the first answer. Without a key an event is never a repeat. */
  readonly key?: string
  /** The span of the event, as `formatTraceContext` writes it. */
  readonly trace?: string
  /** The length of the chain of runs that led to the event, each started by a step of the one before; absent without one. */
  readonly depth?: number
  /** The conversation of the event. Approvals are also asked for there. */
  readonly origin?: {
    readonly channel: string
    readonly account: string
    readonly to: Address
    /** The sender who caused the event; see `ApprovalRequest.origin`. */
    readonly sender?: string
  }
}

/** The result of an event for one matching procedure. `waiting`: the run is stored, and begins when the limit that `reason` names is free. */
export type SopDispatch =
  | { readonly sop: string; readonly status: 'started'; readonly runId: string }
  | { readonly sop: string; readonly status: 'waiting'; readonly runId: string; readonly reason: string }
  | { readonly sop: string; readonly status: 'skipped'; readonly reason: string }

export interface FireOptions {
  readonly idempotency?: IdempotencyKey
  readonly inbox?: number
  /**
   * True: the sender sends a refused event again. An event for which every matching procedure holds all the runs it may then rejects
   * with `unavailable` and has not happened. Otherwise it is recorded as skipped.
   */
  readonly repeats?: boolean
  /**
   * How the request was verified; undefined stands for the credentials of `POST /webhook`, which are the default. A webhook trigger
   * with another authentication does not match.
   */
  readonly verified?: readonly (WebhookAuth | undefined)[]
}

/** How the triggers on a path with the same authentication take requests. */
export interface TriggerWebhook {
  /** Absent: the credentials of `POST /webhook`. */
  readonly auth?: WebhookAuth
  /** The lowest standing that one of the triggers without `auth` takes. */
  readonly role: Standing
  /** Those of the secrets that `auth` names and that are set. */
  readonly secrets: readonly Secret[]
  /** The largest body that one of the triggers takes, in bytes; absent: the limit of `POST /webhook`. */
  readonly bodyBytesMax?: number
  /** The headers that conditions and steps read, in lower case. */
  readonly headers: readonly string[]
}

export interface SopStep {
  /** The number, from 1 without gaps. */
  readonly number: number
  readonly title: string
  readonly body: string
  /** The tools that the step may use; null for every tool. A deterministic step calls exactly one. */
  readonly tools: readonly string[] | null
  readonly requiresConfirmation: boolean
  readonly kind: 'execute' | 'checkpoint'
  /** The tool input of a deterministic step. Texts `$.a.b` and `$event.a` are replaced from the previous output and the payload; null passes the previous output. */
  readonly input: unknown
  /** The JSON Schema of the output; null for any output. */
  readonly output: unknown
}

/** `waiting`: a limit holds the run back, and it has not begun. `expired`: it waited too long and never began. */
export type SopRunStatus =
  | 'waiting'
  | 'running'
  | 'waiting_approval'
  | 'paused_checkpoint'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'expired'

export interface SopStepResult {
  readonly step: number
  readonly status: 'completed' | 'failed' | 'skipped'
  /** The output as text. A deterministic step also has it as JSON in `value`. */
  readonly output: string
  readonly value?: unknown
  readonly startedAtMs: number
  readonly endedAtMs: number
}

/** The question that a run waits for. */
export interface SopGate {
  /** Together with the id of the run, the key of the approval. Unique within the run. */
  readonly stepId: string
  readonly sinceMs: number
  /** The reason; `again` when the step was interrupted and may have had its effect. */
  readonly why: 'mode' | 'confirmation' | 'checkpoint' | 'again'
}

/** One run with its definition at the start. */
export interface SopRun {
  readonly id: string
  readonly sop: string
  /** The agent that carries out the steps; `main` when absent. */
  readonly agent?: string
  readonly version: string
  readonly description: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly steps: readonly SopStep[]
  readonly event: SopEvent
  readonly status: SopRunStatus
  /** The current step, from 1: it is next, runs or waits. */
  readonly step: number
  readonly gate: SopGate | null
  /** The number of gates so far. */
  readonly gates: number
  /** The current attempt, or the one at the cancellation: its turn, or a started tool call with effects. Null when there is none. */
  readonly attempt: {
    readonly turnId: string | null
    readonly number: number
    readonly startedAtMs: number
    /** When the first attempt of the step began; absent for that attempt itself, and in a run of an earlier release. */
    readonly firstStartedAtMs?: number
  } | null
  /** The report of the agent about the step. It counts when the turn ends. */
  readonly report: { readonly status: SopStepResult['status']; readonly output: string } | null
  readonly results: readonly SopStepResult[]
  /** The time at which it began; while it waits, and after it expired, the time of its event. */
  readonly startedAtMs: number
  readonly endedAtMs: number | null
  /** The reason of a failure, a cancellation or an expiry; while the run waits, the limit that holds it back. */
  readonly reason: string | null
}

/**
 * Whether a person may see a run, its approvals and its events: operators, and the person who started it. A run of an event, or of an
 * earlier release, has no starter. Messages that prove no sender are of no person.
 */
export const maySeeRun = (
  { event: { starter } }: Pick<SopRun, 'event'>,
  { standing, caller }: { readonly standing: Standing; readonly caller?: string },
): boolean => standing === 'operator' || (isAtLeast(standing, 'stranger') && caller !== undefined && starter === caller)

/** Whether a run was started in the conversation of a session: by a tool, or by a message. */
export function wasStartedIn({ event: { session, origin } }: Pick<SopRun, 'event'>, place: string): boolean {
  const chat = parseChatSession(place)
  if (session === place || !chat || !origin) return session === place
  const { channel, account, to } = origin
  return channel === chat.channel && account === chat.account && to.to === chat.conversation && to.thread === chat.thread
}

/** Whether a principal may start a procedure by name without an operator. Only an operator may start an unknown one. */
export const mayStartByName = (sops: Pick<Sops, 'list'> | undefined, name: string, standing: Standing): boolean =>
  isAtLeast(standing, sops?.list().find((sop) => sop.name === name)?.openTo ?? 'operator')

const DEVICE = 'device:'

/** Returns the paired device that started a run, as the owner of its approvals and events. */
export const ownerOfRun = ({ event: { starter } }: Pick<SopRun, 'event'>): string | undefined =>
  starter?.startsWith(DEVICE) ? starter.slice(DEVICE.length) : undefined

export const SOP_ENDED: readonly SopRunStatus[] = ['completed', 'failed', 'cancelled', 'expired']
/** The states of a run that did not do all that its event asked for: it can be replayed. */
export const SOP_REPLAYABLE: readonly SopRunStatus[] = ['failed', 'cancelled', 'expired']

/** A procedure as lists show it. */
export interface SopSummary {
  readonly name: string
  /** The agent that carries it out; `main` if absent. */
  readonly agent?: string
  readonly description: string
  readonly version: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly steps: number
  /** The triggers, such as `webhook:/deploy` and `cron:0 9 * * *`. */
  readonly triggers: readonly string[]
  /** The lowest standing that may start it by name without the decision of an operator: the `role` of its `manual` trigger, or `operator`. */
  readonly openTo: Standing
  /** The number of runs that have begun and not ended. */
  readonly activeRuns: number
}

/** The procedure engine. A method that starts or changes a run resolves when the change is durable. */
export interface Sops {
  /** Tells whether a trigger names the topic exactly, without its conditions. Decides whether a request is accepted. */
  matches(source: TriggerKind, topic: string): boolean
  /** Resolves when every noticed change of the procedure folder is loaded. */
  loaded(): Promise<void>
  /** Returns the distinct ways in which triggers on a path take requests; empty when none names it. */
  webhooks(path: string): readonly TriggerWebhook[]
  /**
   * Starts every matching procedure once; resolves to `[]` when none matches. Marks the idempotency key as done, and the inbox message unless
   * every run is skipped.
   */
  fire(event: SopEvent, also?: FireOptions): Promise<readonly SopDispatch[]>
  /**
   * Starts a procedure by name, or stores a run that waits until a limit is free; resolves to the id of the run. Throws `not_found`,
   * `conflict` while the procedure cools down or is switched off, or `unavailable` when it holds all the runs it may.
   */
  run(name: string, event: Omit<SopEvent, 'source' | 'topic'>): Promise<string>
  list(): readonly SopSummary[]
  /** Returns the topics of the loaded triggers of a kind, as written in the definitions. */
  topics(kind: TriggerKind): readonly string[]
  /** Calls `callback` after definitions were reloaded. Returns an unsubscribe function. */
  onReload(callback: () => void): () => void
  runs(filter: {
    readonly limit: number
    readonly sop?: string
    readonly active?: boolean
    /** Only the runs that this person has started. */
    readonly starter?: string
  }): Promise<readonly SopRun[]>
  get(runId: string): Promise<SopRun | undefined>
  /** Records the report of the agent about the step of its turn. Throws `conflict` for any other turn. */
  report(runId: string, turnId: string, report: { readonly status: SopStepResult['status']; readonly output: string }): Promise<SopRun>
  /** Lets a waiting run continue. Throws `not_found`, or `conflict` when the run does not wait. */
  approve(runId: string, by: string): Promise<SopRun>
  /** Cancels a run. Throws `not_found`, or `conflict` when the run has ended. */
  cancel(runId: string, by: string, reason: string): Promise<SopRun>
  /**
   * Starts the procedure of a failed, cancelled or expired run once more, from its first step and with the same event; resolves to the id of
   * the new run, the same one each time within three days. Throws `not_found`, `conflict` for any other run, and what `run` throws.
   */
  replay(runId: string, by: string): Promise<string>
}
