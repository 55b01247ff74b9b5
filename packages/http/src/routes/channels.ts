/** `/api/channels`: the configured channels, the settings that they lack, and a test message. */
import { healthOf } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import { channelTitle, featureOfChannel, notify, type Runtime, type Snapshot } from '@sluice/runtime'
import { AppError, type Channel, defineRoute, type Route, rowOf } from '@sluice/sdk'
import * as v from 'valibot'

const EVENTS_LOOKED_AT = 1024
const TEXT_CHARS_MAX = 4000

const gapSchema = v.object({
  at: v.string(),
  since: v.pipe(v.nullable(v.string()), v.description('Messages after this time may be missing; null: unknown')),
  why: v.string(),
})

const channelSchema = v.object({
  channel: v.string(),
  title: v.pipe(v.string(), v.description('Its name for people, such as that of the platform')),
  feature: v.string(),
  state: v.picklist(['ok', 'connecting', 'degraded', 'down', 'failed']),
  detail: v.nullable(v.string()),
  last_event_at: v.nullable(v.string()),
  last_sent_at: v.nullable(v.string()),
  missing: v.pipe(v.nullable(v.string()), v.description('The keys without which the channel cannot work')),
  webhook: v.pipe(v.nullable(v.string()), v.description('The path at which the platform calls; null for a channel that connects')),
  unsigned: v.pipe(v.nullable(v.string()), v.description('The key whose absence leaves requests unverified; null when they are verified')),
  allow: v.pipe(v.array(v.string()), v.description('The senders that it accepts; `*` accepts every sender')),
  target: v.pipe(v.nullable(v.string()), v.description('Its name as a target of notifications')),
  notifies: v.pipe(v.boolean(), v.description('True: a conversation for notifications is configured, to which a test can go')),
  gaps: v.pipe(v.array(gapSchema), v.description('Spans of time whose messages may be missing, as far as the events are kept')),
})

type Shown = v.InferOutput<typeof channelSchema>

export const channelRoutes = (runtime: Runtime, snapshot: Snapshot): Route[] => [listRoute(runtime, snapshot), testRoute(runtime, snapshot)]

const listRoute = (runtime: Runtime, { channels, features }: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/channels',
    summary: 'The configured channels: their state, their last events, gaps, and what their configuration misses',
    auth: 'operator',
    answers: { 200: { description: 'All configured channels', schema: v.object({ channels: v.array(channelSchema) }) } },
    handle() {
      const gaps = gapsByChannel(runtime)
      const ready = channels.map((channel) => shownChannel(channel, features, gaps.get(channel.name) ?? []))
      const failed = features
        .filter(({ kind, configured, state }) => kind === 'channel' && configured && state === 'failed')
        .map(({ feature, reason }) => failedChannel(feature, reason))
      return { channels: [...ready, ...failed] }
    },
  })

function gapsByChannel({ bus }: Runtime): ReadonlyMap<string, Shown['gaps']> {
  const gaps = new Map<string, Shown['gaps']>()
  for (const { envelope } of bus.recent(EVENTS_LOOKED_AT, { role: 'operator', owner: '' })) {
    if (envelope.type !== 'channel_gap') continue
    const { channel, since, why, timestamp } = envelope
    gaps.set(channel, [...(gaps.get(channel) ?? []), { at: timestamp, since, why }])
  }
  return gaps
}

function shownChannel(channel: Channel, features: Snapshot['features'], gaps: Shown['gaps']): Shown {
  const { state, detail, lastEventAtMs, lastSentAtMs } = healthOf(channel)
  const { name, webhook, missingConfig, notifications, allow } = channel
  return {
    channel: name,
    title: channelTitle(name, features),
    feature: featureOfChannel(name, features),
    state,
    detail: detail ?? null,
    last_event_at: isoTime(lastEventAtMs ?? null),
    last_sent_at: isoTime(lastSentAtMs ?? null),
    missing: missingConfig ?? null,
    webhook: webhook?.path ?? null,
    unsigned: webhook?.unsigned ?? null,
    allow: [...allow],
    target: notifications?.target ?? null,
    notifies: notifications?.to !== undefined,
    gaps,
  }
}

const failedChannel = (feature: string, reason: string | null): Shown => ({
  channel: feature.replace(/^channel-/, ''),
  title: rowOf(feature as never)?.summary ?? feature.replace(/^channel-/, ''),
  feature,
  state: 'failed',
  detail: reason,
  last_event_at: null,
  last_sent_at: null,
  missing: null,
  webhook: null,
  unsigned: null,
  allow: [],
  target: rowOf(feature as never)?.target ?? null,
  notifies: false,
  gaps: [],
})

const testRoute = (runtime: Runtime, { channels }: Snapshot): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/channels/:channel/test',
    summary: 'Send a message over a channel, to see whether it arrives',
    auth: 'operator',
    body: v.object({
      text: v.optional(v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX)), 'This is a test of this channel.'),
      to: v.exactOptional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(512), v.description('The conversation; default: the one for notifications')),
      ),
    }),
    answers: {
      200: {
        description: 'The message is in the outbox',
        schema: v.object({
          queued: v.literal(true),
          replies: v.pipe(v.array(v.number()), v.description('Its numbers in the outbox')),
        }),
      },
    },
    async handle({ by, params: { channel: name = '' }, body: { text, to } }) {
      const channel = channels.find((each) => each.name === name)
      if (!channel) throw new AppError('not_found', `There is no channel '${name}' that is ready`)
      const { notifications } = channel
      if (!notifications)
        throw new AppError('invalid_request', `The channel '${name}' sends only answers, so it has no conversation for a test`)
      const message = { channels: [notifications.target], title: 'Sluice', message: text, ...(to !== undefined && { channelId: to }) }
      const [asked] = await notify(message, runtime)
      if (asked?.status !== 'queued') throw new AppError('invalid_request', asked?.detail ?? `The channel '${name}' cannot be tested`)
      runtime.log.info('test message queued', { channel: name, by })
      return { queued: true, replies: [...(asked.outbox ?? [])] }
    },
  })
