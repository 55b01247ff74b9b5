/** The runtime as the HTTP side and the daemon see it. */
import type { Admission, Agent, Shares } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import type { DeliveryQueues, People } from '@sluice/delivery'
import type { AgentWorkspace, Backlog, Clock, Logger, Sops, Store, Vitals } from '@sluice/sdk'
import type { ProcedureFiles } from '@sluice/sop/procedure-files'
import type { Check } from './doctor/check.ts'
import type { EventBus } from './events/event-bus.ts'
import type { CommandRuns } from './features/command-runs.ts'
import type { Snapshot } from './features/snapshot.ts'
import type { HealthWatch } from './health.ts'
import type { HideSecrets } from './hide-secrets.ts'
import type { History } from './history.ts'
import type { RecentLog } from './log/recent-log.ts'
import type { Settings } from './settings.ts'
import type { OwnedFiles } from './workspace/owned-files.ts'

/** The parts of one daemon that live as long as it does, and the snapshot of features in force. */
export interface Runtime {
  readonly version: string
  readonly profile: string
  readonly startedAtMs: number
  readonly dataDir: string
  readonly store: Store
  readonly agent: Agent
  readonly admission: Admission
  /** What each client holds at once. */
  readonly shares: Shares
  /** The accounts that are linked. */
  readonly people: People
  readonly bus: EventBus
  readonly clock: Clock
  readonly log: Logger
  /** Masks the configured secrets in text and data that leaves the daemon. */
  readonly hideSecrets: HideSecrets
  /** The snapshot in force. A turn keeps the one it began with; see `Agent`. */
  snapshot(): Snapshot
  /**
   * Calls `listener` with each new snapshot, right after it came into force. Listeners are called in the order of their
   * subscription; one that throws is logged and does not stop the others. Returns an unsubscribe function.
   */
  onSnapshot(listener: (snapshot: Snapshot) => void): () => void
  /** The files of an agent; undefined for an unknown name. */
  workspaceOf(agent: string): AgentWorkspace | undefined
  /** The files of people. */
  readonly files: OwnedFiles
  vitals(): Vitals
  backlog(): Promise<Backlog>
  /** Checks the store and the features, for `sluice doctor`. */
  checks(): Promise<Check[]>
  /** The configuration, for editors. */
  readonly settings: Settings
  /** The last lines of the log. */
  readonly recentLog: RecentLog
  /** The running commands of features. */
  readonly commands: CommandRuns
  readonly health: HealthWatch
  /** What happened in each hour. */
  readonly history: History
  /** The procedures on disk, for operators. */
  readonly procedures: ProcedureFiles
  /** The engine of procedures; undefined until it has started. */
  sops(): Sops | undefined
  readonly approvals: ApprovalRegistry
  /** The delivery queues; empty until deliveries have started. */
  readonly delivery: DeliveryQueues
}
