/** Gauges of the running daemon, read when metrics are rendered. */
import type { Backlog, Vitals } from '@sluice/sdk'
import type * as Prom from './prom-client.ts'
import { METRICS, type NameOf } from './table.ts'

/** Where the figures come from. Outside of a daemon, none exist. */
export interface VitalsSource {
  vitals(): Vitals | undefined
  backlog(): Promise<Backlog> | undefined
}

interface Sample {
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
}

const one = (value: number | boolean): readonly Sample[] => [{ value: Number(value) }]
const info = (labels: Readonly<Record<string, string>>): readonly Sample[] => [{ value: 1, labels }]

const LINK_STATES = ['ok', 'connecting', 'down']
const CHANNEL_STATES = [...LINK_STATES, 'degraded']
const states = (label: string, links: Vitals['channels'], all: readonly string[]): readonly Sample[] =>
  links.flatMap(({ name, state }) => all.map((one) => ({ value: Number(one === state), labels: { [label]: name, state: one } })))

const VITALS: Partial<Record<NameOf<'gauge'>, (vitals: Vitals) => readonly Sample[]>> = {
  sluice_build_info: ({ version, profile }) => info({ version, profile }),
  sluice_sse_clients: ({ sseClients }) => one(sseClients),
  sluice_ws_clients: ({ wsClients }) => one(wsClients),
  sluice_events_dropped: ({ eventsDropped }) => one(eventsDropped),
  sluice_turns_running: ({ turnsRunning }) => one(turnsRunning),
  sluice_turns_queued: ({ turnsQueued }) => one(turnsQueued),
  sluice_sessions_active: ({ sessionsActive }) => one(sessionsActive),
  sluice_provider_failing: ({ faults }) => one(faults.provider),
  sluice_sandbox_info: ({ sandbox }) => (sandbox ? info({ backend: sandbox.backend }) : []),
  sluice_sandbox_state: ({ sandbox }) => (sandbox ? info({ state: sandbox.state }) : []),
  sluice_channel_state: ({ channels }) => states('channel', channels, CHANNEL_STATES),
  sluice_link_state: ({ links }) => states('link', links, LINK_STATES),
  sluice_messages_pending: ({ messagesPending }) => one(messagesPending),
  sluice_replies_pending: ({ repliesPending }) => one(repliesPending),
  sluice_oldest_message_seconds: ({ oldestMessageSecs }) => one(oldestMessageSecs),
  sluice_oldest_reply_seconds: ({ oldestReplySecs }) => one(oldestReplySecs),
  sluice_commits_queued: ({ commitsQueued }) => one(commitsQueued),
  sluice_cluster_info: ({ cluster }) => (cluster ? info({ cluster: cluster.name, node: cluster.node }) : []),
  sluice_cluster_workers: ({ cluster }) => (cluster ? one(cluster.workers) : []),
  sluice_cluster_beat_age_seconds: ({ cluster }) => (cluster ? one(cluster.beatAgeSecs) : []),
  sluice_cluster_clock_offset_seconds: ({ cluster }) => (typeof cluster?.clockOffsetSecs === 'number' ? one(cluster.clockOffsetSecs) : []),
  sluice_shards_owned: ({ cluster }) => (cluster ? one(cluster.shardsOwned) : []),
  sluice_shards_share: ({ cluster }) => (cluster ? one(cluster.shardsShare) : []),
  sluice_store_failing: ({ faults }) => one(faults.store),
  sluice_config_rejected: ({ faults }) => one(faults.config),
  sluice_last_backup_timestamp_seconds: ({ lastBackupMs }) => (lastBackupMs === null ? [] : one(lastBackupMs / 1000)),
  sluice_backup_failing: ({ faults }) => one(faults.backup),
}

const BACKLOG: Partial<Record<NameOf<'gauge'>, (backlog: Backlog) => readonly Sample[]>> = {
  sluice_dead_letters: ({ messagesDead, repliesDead }) => [
    { value: messagesDead, labels: { queue: 'inbox' } },
    { value: repliesDead, labels: { queue: 'outbox' } },
  ],
  sluice_ambiguous_replies: ({ repliesAmbiguous }) => one(repliesAmbiguous),
  sluice_approvals_pending: ({ approvalsPending }) => one(approvalsPending),
  sluice_sop_runs_waiting: ({ runsWaiting }) => one(runsWaiting),
  sluice_oldest_sop_run_seconds: ({ oldestRunSecs }) => one(oldestRunSecs ?? 0),
}

/** A figure that cannot be read has no series. */
export function registerVitals(prom: typeof Prom, registry: Prom.Registry, source: VitalsSource): void {
  const register = (name: NameOf<'gauge'>, read: () => readonly Sample[] | Promise<readonly Sample[]>) =>
    new prom.Gauge({
      name,
      help: METRICS[name].help,
      labelNames: METRICS[name].labels,
      registers: [registry],
      async collect() {
        const samples = await read()
        if (METRICS[name].labels.length > 0) this.reset()
        else this.remove()
        for (const { value, labels = {} } of samples) this.set(labels, value)
      },
    })
  // The daemon and the store are asked once for each rendering, whose gauges are read at the same time.
  let vitals: Vitals | undefined
  const lookOnce = (): Vitals | undefined => {
    vitals ??= source.vitals()
    queueMicrotask(() => {
      vitals = undefined
    })
    return vitals
  }
  for (const [name, samplesOf] of Object.entries(VITALS))
    register(name as NameOf<'gauge'>, () => {
      const look = lookOnce()
      return look ? samplesOf(look) : []
    })
  let reading: Promise<Backlog | undefined> | undefined
  const readOnce = (): Promise<Backlog | undefined> => {
    reading ??= Promise.resolve(source.backlog())
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  for (const [name, samplesOf] of Object.entries(BACKLOG))
    register(name as NameOf<'gauge'>, async () => {
      const backlog = await readOnce()
      return backlog ? samplesOf(backlog) : []
    })
}
