/** `/api/status`, `/api/health`, `/api/tools`, `/api/features` and the history of events: the state of the daemon. */

import { shownLimits } from '@sluice/agent'
import { backupRecordSchema, readRecord } from '@sluice/backup'
import { healthOf } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import { channelTitle, type Runtime, type Snapshot } from '@sluice/runtime'
import { healthSchema } from '@sluice/runtime/health-answer'
import { problemSchema, problemsOf } from '@sluice/runtime/problems'
import { type Backlog, type Channel, defineRoute, type Route, rowOf } from '@sluice/sdk'
import * as v from 'valibot'
import type { AppParts } from '../server/app-parts.ts'
import { readerOf } from '../streams/subscription.ts'
import { wholeText } from './query.ts'

const HISTORY_MAX = 1024

const vitalsSchema = v.object({
  turns_running: v.number(),
  turns_queued: v.number(),
  sessions_active: v.number(),
  sse_clients: v.number(),
  ws_clients: v.number(),
  messages_pending: v.number(),
  replies_pending: v.number(),
  oldest_message_secs: v.number(),
  oldest_reply_secs: v.number(),
  commits_queued: v.number(),
  events_dropped: v.number(),
  sandbox: v.nullable(
    v.object({ backend: v.string(), state: v.picklist(['confined', 'fallback', 'unconfined', 'refusing']), detail: v.string() }),
  ),
})

const channelSchema = v.object({
  channel: v.string(),
  title: v.pipe(v.string(), v.description('Its name for people, such as that of the platform')),
  state: v.picklist(['ok', 'connecting', 'degraded', 'down']),
  detail: v.nullable(v.string()),
  last_event_at: v.nullable(v.string()),
  last_sent_at: v.nullable(v.string()),
})

const shownChannel = (channel: Channel, features: Snapshot['features']) => {
  const { state, detail, lastEventAtMs, lastSentAtMs } = healthOf(channel)
  return {
    channel: channel.name,
    title: channelTitle(channel.name, features),
    state,
    detail: detail ?? null,
    last_event_at: isoTime(lastEventAtMs ?? null),
    last_sent_at: isoTime(lastSentAtMs ?? null),
  }
}

const featureSchema = v.object({
  feature: v.string(),
  flag: v.nullable(v.string()),
  kind: v.string(),
  summary: v.pipe(
    v.nullable(v.string()),
    v.description('A short description, such as the name of a platform; null for a feature that is not in the catalogue'),
  ),
  compiled: v.boolean(),
  installed: v.boolean(),
  configured: v.boolean(),
  state: v.picklist(['ready', 'starting', 'unavailable', 'unconfigured', 'failed', 'left_out']),
  reason: v.nullable(v.string()),
  build: v.nullable(v.string()),
})

const featuresSchema = v.object({ features: v.array(featureSchema) })
/** The answer of `GET /api/features`. */
export type FeaturesPage = v.InferOutput<typeof featuresSchema>

const toolSchema = v.object({
  name: v.string(),
  description: v.string(),
  feature: v.string(),
  available: v.boolean(),
  compiled: v.boolean(),
  build: v.nullable(v.string()),
})

const shownVitals = ({ vitals }: Runtime) => {
  const {
    turnsRunning,
    turnsQueued,
    sessionsActive,
    sseClients,
    wsClients,
    messagesPending,
    repliesPending,
    oldestMessageSecs,
    oldestReplySecs,
    commitsQueued,
    eventsDropped,
    sandbox,
  } = vitals()
  return {
    turns_running: turnsRunning,
    turns_queued: turnsQueued,
    sessions_active: sessionsActive,
    sse_clients: sseClients,
    ws_clients: wsClients,
    messages_pending: messagesPending,
    replies_pending: repliesPending,
    oldest_message_secs: Math.round(oldestMessageSecs),
    oldest_reply_secs: Math.round(oldestReplySecs),
    commits_queued: commitsQueued,
    events_dropped: eventsDropped,
    sandbox,
  }
}

const queuesSchema = v.pipe(
  v.object({
    messages_pending: v.number(),
    oldest_message_secs: v.nullable(v.number()),
    replies_pending: v.number(),
    oldest_reply_secs: v.nullable(v.number()),
    messages_dead: v.number(),
    replies_dead: v.number(),
    replies_ambiguous: v.number(),
    approvals_pending: v.number(),
    runs_waiting: v.pipe(v.number(), v.description('Runs of procedures that a limit holds back')),
    oldest_run_secs: v.nullable(v.number()),
  }),
  v.description('Unfinished and failed work in the store'),
)

const statusSchema = v.object({
  version: v.string(),
  profile: v.string(),
  pid: v.number(),
  cluster: v.pipe(
    v.nullable(v.object({ name: v.string(), node: v.string() })),
    v.description('The cluster, and the name of this daemon in it; null for a daemon on its own'),
  ),
  programs: v.pipe(
    v.array(v.object({ server: v.string(), processes: v.number() })),
    v.description('The MCP servers that are programs of this machine, with the number of their processes'),
  ),
  url: v.pipe(v.nullable(v.string()), v.description('The address on which the daemon listens; null in the process of a command')),
  generation: v.number(),
  started_at: v.string(),
  uptime_seconds: v.number(),
  models: v.array(v.string()),
  agents: v.pipe(v.array(v.string()), v.description('The agents, `main` first')),
  model_limits: v.pipe(v.array(v.string()), v.description('What models have refused, such as `ollama:gemma3 does not support tools`')),
  require_pairing: v.boolean(),
  paired_devices: v.number(),
  ...vitalsSchema.entries,
  problems: v.pipe(
    v.array(problemSchema),
    v.description('What an operator should look at, those that stop work first; empty when all is well'),
  ),
  queues: queuesSchema,
  last_backup: v.pipe(
    backupRecordSchema.entries.last,
    v.description('The last backup that was written and verified on this machine; null if there was none'),
  ),
})

/** The answer of `GET /api/status`. */
export type Status = v.InferOutput<typeof statusSchema>

function shownQueues(backlog: Backlog): Status['queues'] {
  return {
    messages_pending: backlog.messagesPending,
    oldest_message_secs: backlog.oldestMessageSecs,
    replies_pending: backlog.repliesPending,
    oldest_reply_secs: backlog.oldestReplySecs,
    messages_dead: backlog.messagesDead,
    replies_dead: backlog.repliesDead,
    replies_ambiguous: backlog.repliesAmbiguous,
    approvals_pending: backlog.approvalsPending,
    runs_waiting: backlog.runsWaiting,
    oldest_run_secs: backlog.oldestRunSecs,
  }
}

export const statusRoutes = ({ runtime, snapshot, url }: Pick<AppParts, 'runtime' | 'snapshot' | 'url'>): Route[] => [
  statusRoute(runtime, snapshot, url),
  healthRoute(runtime, snapshot),
  toolsRoute(snapshot),
  featuresRoute(snapshot),
  historyRoute(runtime),
  doctorRoute(runtime),
]

const checksSchema = v.object({
  checks: v.array(
    v.object({
      check: v.pipe(v.string(), v.description('The subject, such as `store`')),
      status: v.picklist(['ok', 'warn', 'fail']),
      detail: v.string(),
      fix: v.pipe(v.nullable(v.string()), v.description('How to repair it; null when nothing is wrong')),
    }),
  ),
})

/** The answer of `GET /api/doctor`. */
export type ChecksPage = v.InferOutput<typeof checksSchema>

const doctorRoute = ({ checks }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/doctor',
    summary: 'Check the store and the features, as `sluice doctor` shows them',
    auth: 'operator',
    answers: { 200: { description: 'The checks', schema: checksSchema } },
    handle: async () => ({ checks: await checks() }),
  })

const shownCluster = ({ store: { cluster } }: Runtime): Status['cluster'] => (cluster ? { name: cluster.name, node: cluster.node } : null)

const uptimeSecs = ({ clock, startedAtMs }: Runtime): number => Math.floor((clock.nowMs() - startedAtMs) / 1000)

const statusRoute = (runtime: Runtime, snapshot: Snapshot, url: AppParts['url']): Route => {
  const { gateway, models, registries, version: generation } = snapshot
  return defineRoute({
    method: 'GET',
    path: '/api/status',
    summary: 'The version, the configuration and the load of this daemon',
    auth: 'operator',
    answers: { 200: { description: 'The status', schema: statusSchema } },
    handle: async () => ({
      version: runtime.version,
      profile: runtime.profile,
      pid: process.pid,
      cluster: shownCluster(runtime),
      programs: [...(snapshot.service('mcpPrograms')?.() ?? [])],
      url: url?.() ?? null,
      generation,
      started_at: isoTime(runtime.startedAtMs),
      uptime_seconds: uptimeSecs(runtime),
      models,
      agents: [...registries.keys()],
      model_limits: [...new Set([...registries.values()].flatMap(({ models }) => shownLimits(models)))],
      require_pairing: gateway.require_pairing,
      paired_devices: (await runtime.store.devices.list()).length,
      ...shownVitals(runtime),
      problems: problemsOf(runtime, snapshot),
      queues: shownQueues(await runtime.backlog()),
      last_backup: readRecord(runtime.dataDir).last,
    }),
  })
}

const healthRoute = (runtime: Runtime, { features, channels }: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/health',
    summary: 'Health with details. A failed feature makes it `degraded`, as does every fault that `/health` reports',
    auth: 'operator',
    answers: {
      200: {
        description: 'Healthy or degraded',
        schema: v.object({
          ...healthSchema.entries,
          uptime_seconds: v.number(),
          failed: v.array(v.object({ feature: v.string(), reason: v.nullable(v.string()) })),
          channels: v.array(channelSchema),
          ...vitalsSchema.entries,
        }),
      },
    },
    handle() {
      const failed = features.filter(({ state }) => state === 'failed').map(({ feature, reason }) => ({ feature, reason }))
      const health = runtime.health.look()
      const status = failed.length > 0 ? 'degraded' : health.status
      return {
        ...health,
        status,
        uptime_seconds: uptimeSecs(runtime),
        failed,
        channels: channels.map((channel) => shownChannel(channel, features)),
        ...shownVitals(runtime),
      }
    },
  })

const toolsRoute = ({ tools }: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/tools',
    summary: 'The tools of this build, and the tools that it leaves out, each with the command that builds it in',
    auth: 'client',
    answers: { 200: { description: 'All tools', schema: v.object({ tools: v.array(toolSchema) }) } },
    handle: () => ({ tools }),
  })

const featuresRoute = ({ features }: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/features',
    summary: 'Every feature, with its state in this build and configuration',
    auth: 'operator',
    answers: { 200: { description: 'One row per feature', schema: featuresSchema } },
    handle: () => ({ features: features.map((one) => ({ ...one, summary: rowOf(one.feature)?.summary ?? null })) }),
  })

const historyRoute = ({ bus }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/events/history',
    summary: 'The events that are kept for resuming, oldest first',
    auth: 'client',
    query: v.object({ limit: wholeText(1, HISTORY_MAX, 100) }),
    answers: {
      200: {
        description: 'The newest `limit` events',
        schema: v.object({ events: v.array(v.looseObject({ id: v.string(), type: v.string(), timestamp: v.string() })) }),
      },
    },
    async handle({ query: { limit }, role, device }) {
      await bus.catchUp()
      return { events: bus.recent(limit, readerOf({ role, device })).map(({ envelope }) => envelope) }
    },
  })
