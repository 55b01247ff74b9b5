/**
 * `sluice status`: the daemon of this data directory, its health, its problems and its queues. Exits with 1 if it is not running; with `--check`
 * also with 3 while a problem stops work, and with 4 while there is another one.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readRecord } from '@sluice/backup'
import type { Status } from '@sluice/http/answers'
import { healthSchema } from '@sluice/runtime/health-answer'
import { errorText } from '@sluice/sdk'
import * as v from 'valibot'
import { openHere } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { shownPrograms } from '../mcp-programs.ts'
import { megabytes } from '../megabytes.ts'
import { type DaemonProbe, probeDaemon } from '../probe-daemon.ts'

type Queues = Status['queues']

/** The exit codes of `--check`. */
const FAILING = 3
const WARNING = 4

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const daemon = await probeDaemon(context)
  const queues = daemon.running ? daemon.queues : await readQueues(context)
  const backup = daemon.running ? daemon.last_backup : queues === null ? undefined : readRecord(context.dataDir).last
  if (json) out.json({ ...daemon, queues, last_backup: backup ?? null })
  else {
    const parts = [
      problemLines(daemon, out),
      clusterLines(daemon),
      agentLines(daemon),
      programLines(daemon),
      healthLines(daemon),
      queueLines(queues),
      backupLines(backup),
    ]
    for (const line of [stateLine(daemon, out), ...parts.flat()]) out.hint(line)
  }
  if (!daemon.running) return 1
  if (context.options.check !== true || daemon.problems.length === 0) return 0
  return daemon.problems.some(({ state }) => state === 'failing') ? FAILING : WARNING
}

const stateLine = (daemon: DaemonProbe, { style }: Output): string =>
  daemon.running
    ? `${style('green', 'running')} on ${daemon.url} (version ${daemon.version}, pid ${daemon.pid}, profile ${daemon.profile}, since ${daemon.started_at})`
    : daemon.health === undefined
      ? `${style('red', 'not running')}: ${daemon.reason}`
      : `${style('red', 'failing')}: the daemon runs, but cannot work. ${daemon.reason}`

const problemLines = (daemon: DaemonProbe, { style }: Output): string[] =>
  daemon.running
    ? daemon.problems.flatMap(({ state, text, since, fix }) => [
        `${style(state === 'failing' ? 'red' : 'yellow', state.padEnd(11))}  ${text}`,
        `${' '.repeat(13)}${since === null ? '' : `Since ${since}. `}To repair it: ${fix}`,
      ])
    : []

/** Returns no lines for a daemon on its own. */
const clusterLines = (daemon: DaemonProbe): string[] =>
  daemon.running && daemon.cluster ? [`cluster:     ${daemon.cluster.name}, as ${daemon.cluster.node}; see 'sluice cluster status'`] : []

/** Returns no lines if there is only the main agent. */
const agentLines = (daemon: DaemonProbe): string[] =>
  daemon.running && daemon.agents.length > 1 ? [`agents:      ${daemon.agents.join(', ')}`] : []

/** Returns no lines without MCP servers that are programs of this machine. */
const programLines = (daemon: DaemonProbe): string[] =>
  daemon.running && daemon.programs.length > 0 ? [`programs:    ${shownPrograms(daemon.programs)} (MCP)`] : []

/** Returns no lines if the daemon is not running, or answers in the form of another version. */
function healthLines(daemon: DaemonProbe): string[] {
  const parsed = v.safeParse(healthSchema, daemon.health)
  if (!parsed.success) return []
  const { status, store, config, provider, channels, links, warnings } = parsed.output
  const shown = [...channels, ...links].map(({ name, state }) => `${name} ${state}`)
  return [
    `health:      ${status}`,
    `store:       ${store.reason ?? store.state}`,
    ...(config.state === 'ok'
      ? []
      : ["config:      the file is not valid; the previous configuration is in force; see 'sluice config check'"]),
    `provider:    ${provider.state === 'unknown' ? 'not asked since the start' : provider.state}`,
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
    `given up:    ${queues.messages_dead} messages, ${queues.replies_dead} replies; ${queues.replies_ambiguous} replies ambiguous, so perhaps sent`,
    `approvals:   ${queues.approvals_pending} waiting`,
    ...(queues.runs_waiting > 0
      ? [`runs:        ${queues.runs_waiting} waiting${age(queues.oldest_run_secs)}; see 'sluice sop runs --status waiting'`]
      : []),
  ]
}

/** Returns no lines if nothing is known, such as of a daemon of an earlier release. */
function backupLines(backup: Status['last_backup'] | undefined): string[] {
  if (backup === undefined) return []
  if (backup === null) return ["backup:      none; 'sluice backup' makes one"]
  return [`backup:      ${backup.at}, ${megabytes(backup.bytes)} MB, verified: ${backup.file}`]
}

const age = (secs: number | null): string => (secs === null ? '' : `, the oldest for ${secs} s`)

/** Returns null without a database or if a daemon holds it, and a text with the reason if the database cannot be read. */
async function readQueues(context: CliContext): Promise<Queues | string | null> {
  if (context.options.url !== undefined || !existsSync(join(context.dataDir, 'sluice.db'))) return null
  try {
    const opened = await openHere(context)
    if (!opened) return null
    try {
      return (await opened.api.get<Status>('/api/status')).queues
    } finally {
      await opened.close()
    }
  } catch (error) {
    return errorText(error)
  }
}
