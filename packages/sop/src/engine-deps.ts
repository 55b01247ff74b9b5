/** What the engine of procedures needs of the daemon around it. */
import type {
  Approvals,
  ClientId,
  Clock,
  Events,
  Logger,
  Observation,
  Risk,
  SopEvent,
  SopStore,
  ToolReport,
  Trace,
  TriggerKind,
  TurnRow,
} from '@sluice/sdk'
import type { SopDefinition } from './definition.ts'

/** The definitions that are loaded. */
export interface SopLibrary {
  /** Those with a trigger that matches, condition and all. */
  match(event: SopEvent): readonly SopDefinition[]
  matches(source: TriggerKind, topic: string): boolean
  topics(kind: TriggerKind): readonly string[]
  list(): readonly SopDefinition[]
  get(name: string): SopDefinition | undefined
  settled(): Promise<void>
  onReload(callback: () => void): () => void
}

/** The part of the agent that works on steps. */
export interface SopAgent {
  /** Keeps the turn durably under the id it is given. Rejects with `conflict` for one that is known. */
  accept(request: {
    readonly id: string
    readonly source: string
    readonly session: string
    readonly owner: string
    readonly caller: string
    readonly client: ClientId
    readonly trace: Trace
    readonly text: string
    readonly tools?: readonly string[]
  }): Promise<string>
  /** Resolves once no such turn runs or waits in this process. */
  ended(turnId: string): Promise<void>
  abort(turnId: string, owner: string): boolean
  /** Runs one tool; `onBegin` is awaited right before it does anything, and a rejection keeps it from running. */
  call(request: {
    readonly tool: string
    readonly input: unknown
    readonly turn: string
    readonly callId: string
    readonly source: string
    readonly client: ClientId
    readonly caller: string
    readonly trace: Trace
    readonly signal: AbortSignal
    readonly onBegin?: (risk: Risk) => Promise<void>
  }): Promise<{ readonly outcome: 'ok' | 'error'; readonly output: string } & ToolReport>
}

/** Those of `[sop]` that the engine reads. */
export interface SopSettings {
  readonly max_concurrent_total: number
  /** 0: a question waits for ever. */
  readonly approval_timeout_secs: number
  /** 0: all are kept. */
  readonly max_finished_runs: number
}

export interface SopEngineDeps {
  readonly store: SopStore
  readonly turns: { get(id: string): Promise<TurnOutcome | undefined> }
  readonly agent: SopAgent
  readonly approvals: Pick<Approvals, 'open' | 'decide' | 'taker'>
  readonly library: SopLibrary
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
  /** Read whenever it is needed. */
  readonly config: () => SopSettings
  /** On whose behalf steps run. */
  readonly client: ClientId
  readonly observe: (observation: Observation) => void
  /** Of runs and turns: unguessable, never the same twice, and sorted by time. */
  readonly newId: () => string
}

/** What the store says of a turn. */
export type TurnOutcome = Pick<TurnRow, 'status' | 'response' | 'model' | 'error' | 'starts'>
