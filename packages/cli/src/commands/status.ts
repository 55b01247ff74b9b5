/** `sluice status`: whether the daemon of this data directory runs, how it is, and what waits. Exit 1 if it does not run. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { healthSchema } from '@sluice/runtime/health'
import { errorText, type Store } from '@sluice/sdk'
import * as v from 'valibot'
import type { CliContext } from '../context.ts'
import { type DaemonProbe, probeDaemon } from '../probe-daemon.ts'
import { withStore } from '../with-store.ts'

interface Queues {
  readonly messages_pending: number
  readonly oldest_message_secs: number | null
  readonly replies_pending: number
  readonly oldest_reply_secs: number | null
  readonly messages_dead: number
  readonly replies_dead: number
  readonly replies_ambiguous: number
  readonly approvals_pending: number
}

export async function run(context: CliContext): Promise<number> {
  const { out, json, dataDir } = context
  const found = await probeDaemon(dataDir)
  const queues = await readQueues(context)
  if (json) out.json({ ...found, queues })
  else for (const line of [stateLine(found, out), ...healthLines(found), ...queueLines(queues)]) out.print(line)
  return found.running ? 0 : 1
}

const stateLine = (found: DaemonProbe, { style }: CliContext['out']): string =>
  found.running
    ? `${style('green', 'running')} on ${found.url} (version ${found.version}, pid ${found.pid}, profile ${found.profile}, since ${found.started_at})`
    : `${style('red', 'not running')}: ${found.reason}`

function healthLines(found: DaemonProbe): string[] {
  const read = v.safeParse(healthSchema, found.running ? found.health : undefined)
  if (!read.success) return []
  const { status, store, config, provider, channels, links, warnings } = read.output
  const shown = [...channels, ...links].map(({ name, state }) => `${name} ${state}`)
  return [
    `health:      ${status}`,
    `store:       ${store.reason ?? store.state}`,
    ...(config.state === 'ok' ? [] : ["config:      the file is not valid and the one before it is in force; see 'sluice config check'"]),
    `provider:    ${provider.state}`,
    `channels:    ${shown.join(', ') || 'none'}`,
    ...warnings.map((warning) => `warning:     ${warning}`),
  ]
}

function queueLines(queues: Queues | string | null): string[] {
  if (queues === null) return []
  if (typeof queues === 'string') return [`queues:      ${queues}`]
  return [
    `messages:    ${queues.messages_pending} waiting${age(queues.oldest_message_secs)}`,
    `replies:     ${queues.replies_pending} waiting${age(queues.oldest_reply_secs)}`,
    `given up:    ${queues.messages_dead} messages, ${queues.replies_dead} replies; ${queues.replies_ambiguous} replies perhaps sent`,
    `approvals:   ${queues.approvals_pending} waiting`,
  ]
}

const age = (secs: number | null): string => (secs === null ? '' : `, the oldest for ${secs} s`)

/** Null: there is no store yet. A text: why it cannot be read. */
async function readQueues(context: CliContext): Promise<Queues | string | null> {
  if (!existsSync(join(context.dataDir, 'sluice.db'))) return null
  let queues: Queues | null = null
  try {
    await withStore(context, async ({ store, clock }) => {
      queues = await queuesIn(store, clock.nowMs())
      return 0
    })
    return queues
  } catch (error) {
    return errorText(error)
  }
}

async function queuesIn({ inbox, outbox, approvals }: Store, nowMs: number): Promise<Queues> {
  const oldest = { after: 0, limit: 1 }
  const [came, goes, asked, [message], [reply]] = await Promise.all([
    inbox.counts(),
    outbox.counts(),
    approvals.counts(),
    inbox.waiting(oldest),
    outbox.waiting(oldest),
  ])
  const secsSince = (ms: number | undefined): number | null => (ms === undefined ? null : Math.max(0, Math.floor((nowMs - ms) / 1000)))
  return {
    messages_pending: came.pending + came.running,
    oldest_message_secs: secsSince(message && (await inbox.get(message.number))?.receivedAtMs),
    replies_pending: goes.queued + goes.sending + goes.failed,
    oldest_reply_secs: secsSince(reply && (await outbox.get(reply.number))?.createdAtMs),
    messages_dead: came.dead,
    replies_dead: goes.dead,
    replies_ambiguous: goes.ambiguous,
    approvals_pending: asked.pending,
  }
}
