/** `sluice status`: the daemon of this data directory, its health and its queues. Exits with 1 if it is not running. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { healthSchema } from '@sluice/runtime/health'
import { errorText, type Store } from '@sluice/sdk'
import * as v from 'valibot'
import type { CliContext, Output } from '../context.ts'
import { type DaemonProbe, probeDaemon } from '../probe-daemon.ts'
import { withStore } from '../with-store.ts'

/** The unfinished and failed work in the store, as `--json` prints it. */
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
  const daemon = await probeDaemon(dataDir)
  const queues = await readQueues(context)
  if (json) out.json({ ...daemon, queues })
  else for (const line of [stateLine(daemon, out), ...healthLines(daemon), ...queueLines(queues)]) out.print(line)
  return daemon.running ? 0 : 1
}

const stateLine = (daemon: DaemonProbe, { style }: Output): string =>
  daemon.running
    ? `${style('green', 'running')} on ${daemon.url} (version ${daemon.version}, pid ${daemon.pid}, profile ${daemon.profile}, since ${daemon.started_at})`
    : `${style('red', 'not running')}: ${daemon.reason}`

/** Returns no lines if the daemon is not running, or answers in the form of another version. */
function healthLines(daemon: DaemonProbe): string[] {
  const parsed = v.safeParse(healthSchema, daemon.running ? daemon.health : undefined)
  if (!parsed.success) return []
  const { status, store, config, provider, channels, links, warnings } = parsed.output
  const shown = [...channels, ...links].map(({ name, state }) => `${name} ${state}`)
  return [
    `health:      ${status}`,
    `store:       ${store.reason ?? store.state}`,
    ...(config.state === 'ok'
      ? []
      : ["config:      the file is not valid; the previous configuration is in force; see 'sluice config check'"]),
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

/** Returns null if there is no database yet, and a text with the reason if the database cannot be read. */
async function readQueues(context: CliContext): Promise<Queues | string | null> {
  if (!existsSync(join(context.dataDir, 'sluice.db'))) return null
  let queues: Queues | null = null
  try {
    await withStore(context, async (store, clock) => {
      queues = await countQueues(store, clock.nowMs())
      return 0
    })
    return queues
  } catch (error) {
    return errorText(error)
  }
}

async function countQueues({ inbox, outbox, approvals }: Store, nowMs: number): Promise<Queues> {
  const first = { after: 0, limit: 1 }
  const [messages, replies, decisions, [oldestMessage], [oldestReply]] = await Promise.all([
    inbox.counts(),
    outbox.counts(),
    approvals.counts(),
    inbox.waiting(first),
    outbox.waiting(first),
  ])
  const secsSince = (ms: number | undefined): number | null => (ms === undefined ? null : Math.max(0, Math.floor((nowMs - ms) / 1000)))
  return {
    messages_pending: messages.pending + messages.running,
    oldest_message_secs: secsSince(oldestMessage && (await inbox.get(oldestMessage.number))?.receivedAtMs),
    replies_pending: replies.queued + replies.sending + replies.failed,
    oldest_reply_secs: secsSince(oldestReply && (await outbox.get(oldestReply.number))?.createdAtMs),
    messages_dead: messages.dead,
    replies_dead: replies.dead,
    replies_ambiguous: replies.ambiguous,
    approvals_pending: decisions.pending,
  }
}
