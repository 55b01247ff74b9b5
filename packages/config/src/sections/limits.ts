/** Finds the limits of a client in a configuration. */
import { type CountedLimits, isAtLeast, type Limits, type Standing } from '@sluice/sdk'
import type { LoadedConfig } from '../types.ts'
import { sessionsSection } from './core-sections.ts'
import { agentsSection, routingSchema } from './further-agents-section.ts'
import { limitsSection, MEGABYTES, RUNNING } from './limits-section.ts'
import { agentSection, costSection } from './main-agent-sections.ts'

/** The principal of a turn: the client that asks for it, and the standing of that client. */
export interface LimitedClient {
  /** The client, as in `ToolContext.caller`. */
  readonly client: string
  /** The key under which the accounts of a linked person count together; absent for any other client. */
  readonly person?: string
  readonly standing: Standing
  /** The channel of a sender. */
  readonly channel?: string
  /** The name that the sender has chosen on the platform. */
  readonly name?: string
  /** The limits of the room of a message, for all people together. 0: no limit. */
  readonly room?: { readonly key: string; readonly turnsPerHour: number; readonly usdPerDay: number }
}

/** Returns the key under which limits and shares count a client: that of its person, where accounts are linked. */
export const countedAs = ({ client, person = client }: Pick<LimitedClient, 'client' | 'person'>): string => person

/** The most that one client may hold at once. `Infinity`: no limit. */
export interface ClientShares {
  readonly turnsRunning: number
  readonly turnsWaiting: number
  /** The bytes of the texts of its waiting turns. */
  readonly waitingBytes: number
  readonly streams: number
  readonly downloads: number
  /** The bytes of its attachments that are kept. */
  readonly attachmentBytes: number
  /** The shares of all strangers together; absent for any other client. */
  readonly pool?: { readonly key: string; readonly turnsWaiting: number; readonly attachmentBytes: number }
}

/** The pool of all strangers. A channel with limits of its own for the pool has a pool of its own. */
const POOL = 'strangers'
/** The share of `[cost] daily_limit_usd` that strangers may spend together, and the most unless it is configured. */
const POOL_SHARE = 0.1
const POOL_USD_MAX = 1

/** The keys of a share, in `[limits]` or of a channel. */
interface ShareKeys {
  readonly turns_running?: number | undefined
  readonly turns_waiting?: number | undefined
  readonly waiting_mb?: number | undefined
  readonly attachments_mb?: number | undefined
}

const MEGABYTE = 1024 * 1024
/** The shares of a client without any. */
export const NO_SHARES: ClientShares = {
  turnsRunning: Number.POSITIVE_INFINITY,
  turnsWaiting: Number.POSITIVE_INFINITY,
  waitingBytes: Number.POSITIVE_INFINITY,
  streams: Number.POSITIVE_INFINITY,
  downloads: Number.POSITIVE_INFINITY,
  attachmentBytes: Number.POSITIVE_INFINITY,
}

interface Keys {
  readonly turns_per_hour?: number | undefined
  readonly turns_in_flight?: number | undefined
  readonly usd_per_day?: number | undefined
}

/**
 * Returns the limits that count a turn of this client: its own, the limits of the pool for a stranger, and the limits of the room; empty
 * without a limit.
 */
export const limitsOf = (config: LoadedConfig, client: LimitedClient): readonly CountedLimits[] => [
  ...limitsOfClient(config, client),
  ...(client.room ? counted([{ ...client.room, turnsInFlight: 0 }]) : []),
]

function limitsOfClient(config: LoadedConfig, limited: LimitedClient): readonly CountedLimits[] {
  const { standing, channel } = limited
  const client = countedAs(limited)
  const { strangers, operators, ...general } = config.core(limitsSection)
  const own = channelLimitsOf(config, channel)
  if (standing === 'operator') return counted([{ key: client, ...limitsFrom(operators) }])
  if (isAtLeast(standing, 'listed')) return counted([{ key: client, ...limitsFrom(general, own) }])
  const { daily_limit_usd = Number.POSITIVE_INFINITY } = config.core(costSection)
  const pool = { ...strangers.pool, usd_per_day: strangers.pool?.usd_per_day ?? Math.min(POOL_USD_MAX, daily_limit_usd * POOL_SHARE) }
  const ownPool = own?.strangers?.pool
  return counted([
    { key: client, ...limitsFrom(strangers, own?.strangers) },
    { key: poolKey(channel, ownPool), ...limitsFrom(pool, ownPool) },
  ])
}

/** Returns the shares of a client. An operator has no limit. */
export function sharesOf(config: LoadedConfig, { standing, channel }: LimitedClient): ClientShares {
  if (standing === 'operator') return NO_SHARES
  const { strangers, ...general } = config.core(limitsSection)
  const channelLimits = channelLimitsOf(config, channel)
  const kind = standing === 'unverified' ? 'stranger' : standing
  const [keys, own]: ShareKeys[] = kind === 'stranger' ? [strangers, channelLimits?.strangers ?? {}] : [general, channelLimits ?? {}]
  const { waiting, attachments } = MEGABYTES[kind]
  const slots = Math.max(1, Math.floor(config.core(agentSection).max_concurrent_turns * RUNNING[kind]))
  return {
    turnsRunning: shareOf(own?.turns_running ?? keys?.turns_running ?? slots),
    turnsWaiting: shareOf(own?.turns_waiting ?? keys?.turns_waiting),
    waitingBytes: shareOf(own?.waiting_mb ?? keys?.waiting_mb ?? waiting) * MEGABYTE,
    streams: shareOf(general.streams),
    downloads: shareOf(general.downloads),
    attachmentBytes: shareOf(own?.attachments_mb ?? keys?.attachments_mb ?? attachments) * MEGABYTE,
    ...(kind === 'stranger' && { pool: poolOf(channel, strangers.pool, channelLimits?.strangers?.pool) }),
  }
}

const poolOf = (channel: string | undefined, { turns_waiting, attachments_mb }: ShareKeys, own: ShareKeys | undefined) => ({
  key: poolKey(channel, own),
  turnsWaiting: shareOf(own?.turns_waiting ?? turns_waiting),
  attachmentBytes: shareOf(own?.attachments_mb ?? attachments_mb) * MEGABYTE,
})

/** Returns how many quick messages in a row pause a conversation of the channel; 0: never. */
export const loopTurnsOf = (config: LoadedConfig, channel: string): number =>
  channelLimitsOf(config, channel)?.loop_turns ?? config.core(limitsSection).loop_turns

/** Returns the senders of a channel who are operators. */
export const operatorsOf = (config: LoadedConfig, channel: string): readonly string[] => routingOf(config, channel)?.operators ?? []

/** Returns the keys of a channel for its rooms. */
export function roomsOf(config: LoadedConfig, channel: string): { readonly isShared: boolean; readonly overhears: boolean } {
  const { room_session, overhear } = routingOf(config, channel) ?? { room_session: 'shared', overhear: true }
  return { isShared: room_session === 'shared', overhears: overhear }
}

/** When conversations begin again without their history. */
export interface Reset {
  /** After this many hours without a turn; undefined for never. */
  readonly idleHours: number | undefined
  /** At this time of the day, such as `04:00`; undefined for never. */
  readonly dailyAt: string | undefined
  /** The time zone of the day; that of this machine when absent. */
  readonly timezone: string | undefined
}

/** Returns `reset` of the channel, else of the agent, else of `[sessions]`; undefined where none is set. */
export function resetOf(config: LoadedConfig, channel: string, agent: string): Reset | undefined {
  const keys = routingOf(config, channel)?.reset ?? config.core(agentsSection)[agent]?.reset ?? config.core(sessionsSection).reset
  return keys && { idleHours: keys.idle_hours, dailyAt: keys.daily_at, timezone: config.core(agentSection).timezone }
}

/** How the messages that one person writes one after another become turns. */
export interface Pacing {
  /** `batch_ms` of the channel; undefined where its section does not set it. */
  readonly batchMs: number | undefined
  readonly steering: 'steer' | 'queue' | 'interrupt'
}

export function pacingOf(config: LoadedConfig, channel: string): Pacing {
  const { batch_ms, steering = 'steer' } = routingOf(config, channel) ?? {}
  return { batchMs: batch_ms, steering }
}

const channelLimitsOf = (config: LoadedConfig, channel: string | undefined) => routingOf(config, channel)?.limits

function routingOf(config: LoadedConfig, channel: string | undefined) {
  const path = `channels_config.${channel}`
  return channel !== undefined && config.hasCore(path) ? config.core({ path, schema: routingSchema }) : undefined
}

const poolKey = (channel: string | undefined, own: object | undefined): string => (own ? `${POOL}:${channel}` : POOL)

const shareOf = (value = 0): number => (value === 0 ? Number.POSITIVE_INFINITY : value)

const limitsFrom = (general: Keys, own: Keys = {}): Limits => ({
  turnsPerHour: own.turns_per_hour ?? general.turns_per_hour ?? 0,
  turnsInFlight: own.turns_in_flight ?? general.turns_in_flight ?? 0,
  usdPerDay: own.usd_per_day ?? general.usd_per_day ?? 0,
})

const counted = (all: readonly CountedLimits[]): readonly CountedLimits[] =>
  all.filter(({ turnsPerHour, turnsInFlight, usdPerDay }) => turnsPerHour + turnsInFlight + usdPerDay > 0)
