/** The figures of a running daemon, for `GET /api/status`, the metrics and features. Everything they report is in memory. */
import { readRecord } from '@sluice/backup'
import type { SandboxChoice } from '@sluice/runtime'
import { sandboxState } from '@sluice/runtime/health'
import type { Vitals } from '@sluice/sdk'
import type { Features } from './open-features.ts'
import type { Opened } from './opened.ts'
import type { Parts } from './put-together.ts'

type Measured = Pick<Opened, 'version' | 'profile' | 'startedAtMs' | 'dataDir' | 'store' | 'ownership'> &
  Pick<Parts, 'agent' | 'delivery' | 'health' | 'subscribers'> &
  Pick<Features, 'lifecycle'>

export function vitalsOf(runtime: Measured): Vitals {
  const { running, queued, sessions } = runtime.agent.load()
  const { messages, replies } = runtime.delivery.load()
  const { messageSecs, replySecs } = runtime.delivery.ages()
  const { channels, links, store, config, provider } = runtime.health.look()
  const backups = readRecord(runtime.dataDir)
  return {
    version: runtime.version,
    profile: runtime.profile,
    startedAtMs: runtime.startedAtMs,
    turnsRunning: running,
    turnsQueued: queued,
    sessionsActive: sessions,
    sseClients: runtime.subscribers.sse,
    wsClients: runtime.subscribers.ws,
    messagesPending: messages,
    repliesPending: replies,
    oldestMessageSecs: messageSecs,
    oldestReplySecs: replySecs,
    commitsQueued: runtime.store.pending(),
    ...clusterVitals(runtime),
    eventsDropped: runtime.subscribers.dropped,
    channels,
    links,
    lastBackupMs: backups.last && Date.parse(backups.last.at),
    faults: {
      store: store.state === 'failing',
      config: config.state === 'rejected',
      provider: provider.state === 'failing',
      backup: backups.failure !== null,
    },
    sandbox: measuredSandbox(runtime.lifecycle.guards()?.sandbox.latest()),
  }
}

function clusterVitals({ store: { cluster }, ownership }: Pick<Opened, 'store' | 'ownership'>): Pick<Vitals, 'cluster'> {
  if (!cluster) return {}
  const { workers, beatAgeMs, clockOffsetMs } = cluster.seen()
  const clockOffsetSecs = clockOffsetMs === null ? null : clockOffsetMs / 1000
  const { share: shardsShare = 0 } = ownership
  const shardsOwned = ownership.leases().held
  const { name, node } = cluster
  return { cluster: { name, node, workers, shardsOwned, shardsShare, beatAgeSecs: beatAgeMs / 1000, clockOffsetSecs } }
}

/** The choice in one sentence: the measurement of the backend, or the reason why no backend was chosen. */
function measuredSandbox(choice: SandboxChoice | undefined): Vitals['sandbox'] {
  if (!choice) return null
  const { sandbox, probes, warning } = choice
  const measured = probes.find(({ name }) => name === sandbox.name)?.detail
  return {
    backend: sandbox.name,
    state: sandboxState(choice),
    detail: warning ?? measured ?? 'commands run without a sandbox: it is switched off',
  }
}
