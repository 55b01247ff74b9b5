/** `POST /api/channel-events`: events of programs on this machine, for every subscriber (§2.5, §4.4, §6). */
import { AppError, buildHint, type CatalogueId, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { EventBus } from './bus.ts'

const CHANNELS_MAX = 64
/** JSON has no white space above it. */
const SPACE = 0x20
const BRACE = 0x7b

/** Which package carries the messages of each dispatch target; null: every subscriber is one. */
const TARGETS: Readonly<Record<string, CatalogueId | null>> = {
  dashboard: null,
  community: 'channel-discord',
  workspace: 'channel-slack',
  messenger: 'channel-telegram',
}

const text = (description: string) => v.optional(v.pipe(v.string(), v.description(description)))

const body = v.looseObject({
  type: text('What happened; `human_approval_request` is handled specially'),
  content: v.optional(v.pipe(v.unknown(), v.description('`title` and `message`'))),
  channels: v.optional(
    v.pipe(v.array(v.string()), v.maxLength(CHANNELS_MAX), v.description(`Of ${Object.keys(TARGETS).join(', ')}, in any case`)),
  ),
  run_id: text('Required for `human_approval_request`'),
  step_id: text('Required for `human_approval_request`'),
  approve_keywords: v.optional(v.array(v.string())),
  reject_keywords: v.optional(v.array(v.string())),
})

const answer = v.object({
  ok: v.literal(true),
  event_id: v.string(),
  channels: v.array(v.object({ channel: v.string(), status: v.picklist(['broadcast', 'unavailable']), detail: v.string() })),
})

/** What became of one name in `channels`; a name nobody knows fails nothing. */
function dispatch(channel: string): v.InferOutput<typeof answer>['channels'][number] {
  const name = channel.toLowerCase()
  const carrier = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined
  if (carrier === null) return { channel, status: 'broadcast', detail: 'sent to every subscriber of /api/events and /ws/events' }
  if (carrier === undefined) {
    return { channel, status: 'unavailable', detail: `no such channel; there are ${Object.keys(TARGETS).join(', ')}` }
  }
  return { channel, status: 'unavailable', detail: `this build has no ${carrier}: ${buildHint(carrier)}` }
}

/** An approval nobody could give must not look accepted. */
function refuseApproval({ run_id, step_id }: v.InferOutput<typeof body>): never {
  if (!run_id || !step_id) throw new AppError('invalid_request', 'human_approval_request needs run_id and step_id')
  throw new AppError('unavailable', 'Approvals are not part of this release; nothing was broadcast and nothing is pending')
}

export const channelEventsRoute = (bus: EventBus): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/channel-events',
    summary: 'Broadcast an event to every subscriber',
    auth: 'local',
    body,
    answers: { 200: { description: 'Broadcast, with what became of each channel asked for', schema: answer } },
    handle({ body: event, raw }) {
      // The schema takes a list for an object without members.
      if (raw.find((byte) => byte > SPACE) !== BRACE) throw new AppError('invalid_request', 'The body must be a JSON object')
      if (event.type === 'human_approval_request') refuseApproval(event)
      const eventId = `${bus.run}-${bus.seq + 1}`
      bus.emit({ type: 'channel_event', payload: event })
      return { ok: true, event_id: eventId, channels: (event.channels ?? []).map(dispatch) }
    },
  })
