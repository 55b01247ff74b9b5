/** The services of the daemon that the procedure engine calls. */
import type {
  Approvals,
  ClientId,
  Clock,
  Events,
  FireOptions,
  Lease,
  Logger,
  MessageNews,
  Observation,
  OwnedSopStore,
  Risk,
  Secret,
  SopEvent,
  SopRun,
  SopStore,
  Standing,
  ToolReport,
  Trace,
  TriggerKind,
  TriggerWebhook,
  TurnRow,
} from '@sluice/sdk'
import type { SopDefinition } from '../definition/definition.ts'

export interface EnginePorts {
  readonly store: SopStore
  readonly turns: { get(id: string): Promise<TurnOutcome | undefined> }
  readonly agent: SopAgent
  readonly approvals: Pick<Approvals, 'open' | 'decide' | 'onDecision'>
  readonly library: SopLibrary
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Returns the settings in force. The engine calls it at each use, so a reload needs no restart. */
  readonly config: () => SopSettings
  /** The client on whose behalf steps run. */
  readonly client: ClientId
  readonly observe: (observation: Observation) => void
  /** Tells the person whose message started a run that it has ended without success. */
  readonly starters: {
    /** Returns the notice; undefined when nobody is told. */
    newsOf(run: SopRun): MessageNews | undefined
    /** Called with the outbox numbers of a notice, which the commit of the end has queued. */
    queued(news: MessageNews, numbers: readonly number[]): void
  }
  /** Returns the actor of an event as people read it. */
  readonly actorName: (by: string) => Promise<string>
  /** Returns an id for a run or a turn. Ids are unguessable, unique and sort by time. */
  readonly newId: () => string
}

/** The ports as the parts of the engine use them. */
export interface RunPorts extends EnginePorts {
  /** Called when the status of a run has changed, which may have freed a slot. */
  readonly changed: () => void
}

/** The runs of some shards, as the process that carries them out stores them: those in the shards of `lease`, or all without a lease. */
export interface RunHome {
  readonly sops: OwnedSopStore
  readonly lease?: Lease
}

/** The loaded definitions. */
export interface SopLibrary {
  /** Returns the procedures with a trigger that matches the event, its conditions included; `verified` is described at `Sops.fire`. */
  match(event: SopEvent, verified?: FireOptions['verified']): readonly SopDefinition[]
  /** Returns whether a trigger names the topic; conditions are ignored. */
  matches(source: TriggerKind, topic: string): boolean
  webhooks(path: string): readonly Omit<TriggerWebhook, 'secrets'>[]
  topics(kind: TriggerKind): readonly string[]
  list(): readonly SopDefinition[]
  get(name: string): SopDefinition | undefined
  /** Resolves once every change noticed so far is loaded. */
  loaded(): Promise<void>
  /** Returns an unsubscribe function. */
  onReload(callback: () => void): () => void
}

/** The part of the agent that carries out steps. */
export interface SopAgent {
  /** Stores the turn durably under the given id. Rejects with `conflict` when a turn with this id exists. */
  accept(request: StepTurnRequest): Promise<string>
  /** Resolves once no turn with this id runs or waits in this process. */
  ended(turnId: string): Promise<void>
  abort(turnId: string, owner: string): boolean
  /** Runs one tool. Awaits `onBegin` right before the tool acts; when it rejects, the tool does not run. */
  call(request: StepCallRequest): Promise<{ readonly outcome: 'ok' | 'error'; readonly output: string } & ToolReport>
}

/** A turn that carries out a step. */
export interface StepTurnRequest {
  readonly id: string
  readonly source: string
  readonly session: string
  readonly owner: string
  readonly caller: string
  readonly client: ClientId
  readonly trace: Trace
  readonly text: string
  /** The only tools of the turn; absent: every tool. */
  readonly tools?: readonly string[]
}

/** A tool call that carries out a step without a model. */
export interface StepCallRequest {
  /** The agent that makes the call. */
  readonly agent: string
  readonly tool: string
  readonly input: unknown
  readonly turn: string
  readonly callId: string
  readonly source: string
  readonly client: ClientId
  readonly caller: string
  readonly standing: Standing
  readonly trace: Trace
  readonly signal: AbortSignal
  readonly onBegin?: (risk: Risk) => Promise<void>
}

/** The keys of `[sop]` that the engine reads. */
export interface SopSettings {
  /** 0: no limit. */
  readonly max_concurrent_total: number
  /** The longest time that a run waits until it expires. */
  readonly max_age_hours: number
  /** 0: an approval never expires. */
  readonly approval_timeout_secs: number
  /** 0: every ended run is kept. */
  readonly max_finished_runs: number
  /** The secrets that webhook triggers name. */
  readonly secrets?: Readonly<Record<string, Secret>> | undefined
}

/** The stored state of a turn that carries out a step. */
export type TurnOutcome = Pick<TurnRow, 'status' | 'response' | 'model' | 'error' | 'starts'>
