/** What keeps a daemon from working as its operator expects: one sentence each, with the cause, since when, and what to do about it. */
import { readRecord } from '@sluice/backup'
import { healthOf } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import { type Vitals, withFullStop } from '@sluice/sdk'
import * as v from 'valibot'
import type { Snapshot } from './features/snapshot.ts'
import type { HealthWatch } from './health.ts'

export const problemSchema = v.object({
  about: v.picklist(['store', 'config', 'provider', 'channel', 'link', 'feature', 'sandbox', 'clock', 'backup', 'cluster', 'proxy']),
  name: v.pipe(v.nullable(v.string()), v.description('The channel, link or feature')),
  state: v.pipe(
    v.picklist(['failing', 'warning']),
    v.description('`failing`: people get no answer or a wrong one, or messages are refused, until it is repaired'),
  ),
  text: v.string(),
  since: v.nullable(v.string()),
  fix: v.string(),
})

export type Problem = v.InferOutput<typeof problemSchema>

const BACKUP_DAYS_MAX = 8
const DAY_MS = 86_400_000

interface ProblemSources {
  readonly health: HealthWatch
  readonly dataDir: string
  readonly clock: { nowMs(): number }
  vitals(): Pick<Vitals, 'sandbox'>
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${withFullStop(text.slice(1))}`

/** Problems that stop work come first. */
export function problemsOf({ health, dataDir, clock, vitals }: ProblemSources, { channels, links, features }: Snapshot): Problem[] {
  const { store, leases, warnings } = health.look()
  const { provider, config, jumped, nodes = [] } = health.reasons()
  const problems: Problem[] = []
  const add = (
    about: Problem['about'],
    state: Problem['state'],
    text: string,
    fix: string,
    more: { name?: string; sinceMs?: number } = {},
  ) => problems.push({ about, name: more.name ?? null, state, text, since: isoTime(more.sinceMs ?? null), fix })

  if (store.state !== 'ok')
    add('store', 'failing', `The store cannot write: ${store.reason ?? 'the cause is in the log'}.`, "run 'sluice doctor'")
  if (leases.held < leases.wanted)
    add(
      'cluster',
      'failing',
      `This daemon holds ${leases.held} of ${leases.wanted} leases: another process has the rest, or may take it.`,
      "run 'sluice cluster status'",
    )
  for (const { state, text, fix } of nodes) add('cluster', state, text, fix)
  if (provider)
    add(
      'provider',
      'failing',
      `The provider does not answer: ${provider.error}`,
      "run 'sluice models test', and check [provider]",
      provider,
    )
  for (const { feature, state, reason } of features)
    if (state === 'failed')
      add('feature', 'failing', withFullStop(`${feature} does not work: ${reason ?? 'the cause is in the log'}`), "run 'sluice doctor'", {
        name: feature,
      })
  for (const channel of channels) {
    const { state, detail } = healthOf(channel)
    const sinceMs = health.channelSinceMs(channel.name)
    const more = { name: channel.name, ...(sinceMs !== undefined && { sinceMs }) }
    const why = detail ? `: ${detail}` : ''
    if (state === 'down')
      add('channel', 'failing', withFullStop(`${channel.name} is down${why}`), 'check its settings, and send a test message', more)
    if (state === 'degraded')
      add(
        'channel',
        'warning',
        withFullStop(`${channel.name} sends replies of unknown outcome${why}`),
        "look at 'sluice outbox list --state ambiguous'",
        more,
      )
  }
  for (const { name, sinceMs, detail } of health.absentChannels())
    add('channel', 'failing', withFullStop(`${name} is not there: ${detail}`), 'configure it again, or discard what waits for it', {
      name,
      sinceMs,
    })
  for (const { name, state } of links())
    if (state === 'down' || state === 'degraded')
      add('link', 'failing', `The connection ${name} is ${state}.`, "run 'sluice doctor'", { name })
  if (config)
    add(
      'config',
      'warning',
      `The changed configuration is not valid, so the one before stays in force: ${config.error}`,
      "run 'sluice config check'",
      config,
    )
  const { sandbox } = vitals()
  if (sandbox && sandbox.state !== 'confined')
    add('sandbox', sandbox.state === 'refusing' ? 'failing' : 'warning', sentence(sandbox.detail), "run 'sluice doctor'")
  for (const warning of warnings)
    if (warning.startsWith('a forwarding header')) add('proxy', 'warning', sentence(warning), 'set it in the configuration')
  if (jumped && health.hasJumped())
    add(
      'clock',
      'warning',
      `The clock of the machine was set ${jumped.ms < 0 ? 'back' : 'ahead'} by ${Math.round(Math.abs(jumped.ms) / 1000)} s, or the machine slept.`,
      'check that the machine keeps the time',
      jumped,
    )
  const { last, failure } = readRecord(dataDir)
  if (failure)
    add('backup', 'warning', `The last backup failed: ${failure.error}`, "repair the cause and run 'sluice backup'", {
      sinceMs: Date.parse(failure.at),
    })
  else if (last && clock.nowMs() - Date.parse(last.at) > BACKUP_DAYS_MAX * DAY_MS)
    add('backup', 'warning', `The last backup is more than ${BACKUP_DAYS_MAX} days old.`, "run 'sluice backup', or set [backup] schedule", {
      sinceMs: Date.parse(last.at),
    })
  return problems.toSorted((a, b) => Number(b.state === 'failing') - Number(a.state === 'failing'))
}
