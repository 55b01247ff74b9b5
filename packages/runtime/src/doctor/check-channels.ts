/** Checks the channels: their settings, the verification of their webhooks, and messages and replies that were given up. */
import { targetsOf } from '@sluice/approvals'
import { approvalsSection, limitsOf, notifySection, operatorsOf, sharesOf } from '@sluice/config'
import { isNamed } from '@sluice/delivery'
import type { Store } from '@sluice/sdk'
import { configuredChannels } from '../features/configured-channels.ts'
import type { Snapshot } from '../features/snapshot.ts'
import { type Check, fail, ok, warn } from './check.ts'

export function checkWebhooks(snapshot: Snapshot): Check[] {
  const webhooks = configuredChannels(snapshot).ready.flatMap(({ channel: { name, webhook }, section }) =>
    webhook ? [{ name, section, missing: webhook.unsigned }] : [],
  )
  const unsigned = webhooks.flatMap(({ name, section, missing }) => {
    if (missing === undefined) return []
    const detail = `${name}: [${section}] ${missing} is not set, so any client can post as the platform`
    return [fail('webhooks', detail, `sluice config set ${section}.${missing}`)]
  })
  if (unsigned.length > 0) return unsigned
  const names = webhooks.map(({ name }) => name).join(', ')
  return [ok('webhooks', names === '' ? 'no channel with a webhook is configured' : `${names}: every request is verified`)]
}

/** Empty if every channel has all that it needs. */
export const checkChannels = (snapshot: Snapshot): Check[] =>
  configuredChannels(snapshot).ready.flatMap(({ channel: { name, missingConfig }, section }) =>
    missingConfig === undefined ? [] : [fail('channels', `${name} cannot work without ${missingConfig}`, `set it in [${section}]`)],
  )

export const hasChannels = (snapshot: Snapshot): boolean => configuredChannels(snapshot).ready.length > 0

/** Says where operators are asked. Warns if no chat reaches one: calls that only operators decide are refused, or wait for the page. */
export function checkApprovalChats({ config }: Snapshot): Check {
  const chats = config.core(approvalsSection).channels.filter((name) => name !== 'dashboard')
  if (chats.length > 0) return ok('approvals', `operators are asked on ${chats.join(', ')}`)
  const detail = 'no operator can be reached by chat: what only operators decide waits for the page or the command line, or is refused'
  return warn('approvals', detail, 'set [approvals] channels to your own conversation, such as ["signal:+15550100"]')
}

/** Empty if each chat in which operators are asked or notified is on a channel that is ready. */
export function checkOperatorChats({ channels, config, features }: Snapshot): Check[] {
  const chats = { approvals: config.core(approvalsSection).channels, notify: config.core(notifySection).channels ?? [] }
  const options = { channels: () => channels, features: () => features }
  return Object.entries(chats).flatMap(([section, names]) =>
    targetsOf(names, undefined, options).flatMap((target) =>
      'answer' in target && target.answer.status === 'unavailable'
        ? [fail(section, `nothing reaches ${target.name}: ${target.answer.detail}`, `correct [${section}] channels`)]
        : [],
    ),
  )
}

/** Warns of operators whom no entry of the allowlist names: they stay strangers. */
export const checkOperators = (snapshot: Snapshot): Check[] =>
  configuredChannels(snapshot).ready.flatMap(({ channel, section }) => {
    const { name } = channel
    const unnamed = operatorsOf(snapshot.config, name).filter((sender) => !isNamed(channel, sender))
    if (unnamed.length === 0) return []
    const detail = `${name}: no entry of the allowlist names ${unnamed.join(', ')}, so [${section}] operators has no effect for them`
    return [warn('operators', detail, `add them to the allowlist in [${section}] too`)]
  })

/** Warns of channels that every sender may use without a limit for all of them together. */
export const checkStrangers = (snapshot: Snapshot): Check[] =>
  configuredChannels(snapshot).ready.flatMap(({ channel: { name, allow }, section }) => {
    if (!allow.includes('*')) return []
    const pool = limitsOf(snapshot.config, { client: '', standing: 'stranger', channel: name }).find(({ key }) => key !== '')
    if (pool && (pool.turnsPerHour > 0 || pool.usdPerDay > 0)) return []
    const detail = `${name}: every sender may use it, and no limit holds for all of them together`
    return [warn('limits', detail, `set turns_per_hour or usd_per_day in [limits.strangers.pool] or [${section}.limits.strangers.pool]`)]
  })

/** Tells what one device with the role client may hold at once, and warns of a share without a limit. */
export function checkShares({ config }: Snapshot): Check {
  const { turnsRunning, turnsWaiting, waitingBytes, streams, downloads, attachmentBytes } = sharesOf(config, {
    client: '',
    standing: 'client',
  })
  const open = Object.entries({
    turns_running: turnsRunning,
    turns_waiting: turnsWaiting,
    waiting_mb: waitingBytes,
    streams,
    downloads,
    attachments_mb: attachmentBytes,
  }).flatMap(([key, max]) => (max === Number.POSITIVE_INFINITY ? [key] : []))
  if (open.length > 0) return warn('shares', `one client may take all there is: ${open.join(', ')}`, 'set these keys in [limits]')
  const megabytes = (bytes: number): number => bytes / 1024 / 1024
  const turns = `${turnsRunning} turns run and ${turnsWaiting} wait with ${megabytes(waitingBytes)} MB of text`
  const rest = `${streams} streams, ${downloads} downloads, ${megabytes(attachmentBytes)} MB of attachments and results`
  return ok('shares', `one device may have ${turns}; ${rest}`)
}

export async function checkDeliveries({ inbox, outbox }: Store): Promise<Check[]> {
  const [messages, replies] = await Promise.all([inbox.counts(), outbox.counts()])
  const checks: Check[] = []
  if (messages.dead > 0) checks.push(warn('deliveries', `messages given up: ${messages.dead}`, "see 'sluice inbox dead'"))
  if (replies.dead + replies.ambiguous > 0) {
    const detail = `replies given up: ${replies.dead}, ambiguous, so perhaps sent: ${replies.ambiguous}`
    checks.push(warn('deliveries', detail, "see 'sluice outbox dead'"))
  }
  return checks.length > 0 ? checks : [ok('deliveries', 'no message or reply was given up')]
}

const ROWS_LOOKED_AT = 500

/** Names the channels that are not there although messages or replies wait for them, as far as the newest rows show it. Empty without such channels. */
export async function checkAbsentChannels(
  { inbox, outbox }: Pick<Store, 'inbox' | 'outbox'>,
  { channels }: Pick<Snapshot, 'channels'>,
): Promise<Check[]> {
  const present = new Set(channels.map(({ name }) => name))
  const lists = await Promise.all([
    inbox.list({ state: 'pending', limit: ROWS_LOOKED_AT }),
    outbox.list({ state: 'queued', limit: ROWS_LOOKED_AT }),
    outbox.list({ state: 'failed', limit: ROWS_LOOKED_AT }),
  ])
  const waiting = new Set(lists.flat().map(({ channel }) => channel))
  return [...waiting]
    .filter((name) => !present.has(name))
    .map((name) =>
      fail(
        'channels',
        `messages or replies wait for ${name}, which was removed from the configuration or does not start`,
        `configure it again; 'sluice inbox list --channel ${name}' and 'sluice outbox list --channel ${name}' show what waits`,
      ),
    )
}
