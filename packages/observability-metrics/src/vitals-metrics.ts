/** Gauges of the running daemon, read when metrics are rendered. */
import type { Vitals } from '@sluice/sdk'
import type * as Prom from './prom-client.ts'

const GAUGES: readonly (readonly [name: string, help: string, read: (vitals: Vitals) => number])[] = [
  ['turns_running', 'Agent turns running', ({ turnsRunning }) => turnsRunning],
  ['turns_queued', 'Agent turns waiting', ({ turnsQueued }) => turnsQueued],
  ['sessions_active', 'Sessions with a turn running or waiting', ({ sessionsActive }) => sessionsActive],
  ['sse_clients', 'Clients subscribed by server-sent events', ({ sseClients }) => sseClients],
  ['ws_clients', 'Clients connected by WebSocket', ({ wsClients }) => wsClients],
  ['messages_pending', 'Messages of channels waiting for their turn', ({ messagesPending }) => messagesPending],
  ['replies_pending', 'Replies waiting to be sent', ({ repliesPending }) => repliesPending],
  ['oldest_message_seconds', 'Age of the oldest message that waits for the end of its turn', ({ oldestMessageSecs }) => oldestMessageSecs],
  ['oldest_reply_seconds', 'Age of the oldest reply that waits to be sent', ({ oldestReplySecs }) => oldestReplySecs],
  ['commits_queued', 'Writes waiting for their commit', ({ commitsQueued }) => commitsQueued],
  ['events_dropped', 'Events that slow subscribers missed since the start', ({ eventsDropped }) => eventsDropped],
]

/** Without a `vitals` service, the gauges have no value. */
export function registerVitals(prom: typeof Prom, registry: Prom.Registry, vitals: () => Vitals | undefined): void {
  for (const [name, help, read] of GAUGES) {
    new prom.Gauge({
      name: `sluice_${name}`,
      help,
      registers: [registry],
      collect() {
        const now = vitals()
        if (now) this.set(read(now))
        else this.remove()
      },
    })
  }
  new prom.Gauge({
    name: 'sluice_sandbox_info',
    help: 'Always 1; the label is the measured sandbox backend of commands',
    labelNames: ['backend'],
    registers: [registry],
    collect() {
      this.reset()
      const backend = vitals()?.sandbox?.backend
      if (backend !== undefined) this.set({ backend }, 1)
    },
  })
}
