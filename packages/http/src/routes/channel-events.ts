/** `POST /api/channel-events`: events of programs on this machine, for every subscriber and for people in chats. */

import { APPROVAL_STATES, KEYWORDS_MAX, TIMEOUT_SECS_MAX } from '@sluice/approvals'
import { TARGETS } from '@sluice/config'
import { isoTime } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { notify, type Runtime } from '@sluice/runtime'
import { AppError, type AskedTarget, defineRoute, formatTraceContext, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'

const CHANNELS_MAX = 64
const CHANNEL_ID_CHARS_MAX = 256
/** No white space of JSON has a higher code. */
const SPACE = 0x20
const BRACE = 0x7b

const APPROVAL_TITLE = 'Human approval needed'

const text = (description: string) => v.exactOptional(v.pipe(v.string(), v.description(description)))
const keywords = (description: string) =>
  v.exactOptional(v.pipe(v.array(v.string()), v.maxLength(KEYWORDS_MAX), v.description(description)))

const body = v.looseObject({
  type: text('The kind of event; `human_approval_request` asks for an approval'),
  content: v.exactOptional(v.pipe(v.unknown(), v.description('`title` and `message`'))),
  channels: v.exactOptional(
    v.pipe(v.array(v.string()), v.maxLength(CHANNELS_MAX), v.description(`Any of ${TARGETS.join(', ')}, in upper or lower case`)),
  ),
  channel_id: v.exactOptional(
    v.pipe(
      v.union([v.pipe(v.string(), v.minLength(1), v.maxLength(CHANNEL_ID_CHARS_MAX)), v.pipe(v.number(), v.safeInteger())]),
      v.description('The conversation that gets the event, instead of the configured ones'),
    ),
  ),
  run_id: text('Required for `human_approval_request`'),
  step_id: text('Required for `human_approval_request`'),
  workflow_name: text('The name of the workflow that asks; default: `run_id`'),
  timeout: v.exactOptional(
    v.pipe(v.number(), v.minValue(0), v.maxValue(TIMEOUT_SECS_MAX), v.description('Seconds until the approval expires; 0: never')),
  ),
  approve_keywords: keywords('Default: approve, approved, yes, lgtm'),
  reject_keywords: keywords('Default: reject, rejected, no'),
})

type Body = v.InferOutput<typeof body>

const answer = v.object({
  ok: v.literal(true),
  event_id: v.pipe(v.string(), v.description('The id of the `channel_event`')),
  channels: v.pipe(
    v.array(
      v.object({
        channel: v.string(),
        status: v.picklist(['queued', 'broadcast', 'unavailable']),
        detail: v.string(),
        outbox: v.exactOptional(v.pipe(v.array(v.number()), v.description('Numbers in the outbox'))),
      }),
    ),
    v.description('The result of each named channel; for a known approval, people are not asked again'),
  ),
  approval: v.exactOptional(
    v.object({
      run_id: v.string(),
      step_id: v.string(),
      state: v.picklist(APPROVAL_STATES),
      expires_at: v.nullable(v.string()),
      status_url: v.string(),
    }),
  ),
})

type Answer = v.InferOutput<typeof answer>

export const channelEventsRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/channel-events',
    summary: 'Send an event to all subscribers and to people in chats, or ask people for an approval',
    auth: 'local',
    body,
    answers: { 200: { description: 'The event is broadcast; the result of each named channel', schema: answer } },
    async handle(request) {
      const { body: event, raw } = request
      // The schema accepts an array as an object without members.
      if (raw.find((byte) => byte > SPACE) !== BRACE) throw new AppError('invalid_request', 'The body must be a JSON object')
      const outcome =
        event.type === 'human_approval_request' ? await openApproval(runtime, event) : await notifyPeople(runtime, event, request)
      const eventId = await runtime.bus.add({ type: 'channel_event', payload: event })
      return { ok: true, event_id: eventId, ...outcome } satisfies Answer
    },
  })

/** Keeps the approval in the store before the event is broadcast; the registry emits the request itself. */
async function openApproval({ approvals }: Runtime, event: Body): Promise<Pick<Answer, 'channels' | 'approval'>> {
  const { run_id, step_id, workflow_name, timeout = 0, approve_keywords, reject_keywords, channels } = event
  if (!run_id || !step_id) throw new AppError('invalid_request', 'human_approval_request needs run_id and step_id')
  const { approval, asked } = await approvals.open({
    runId: run_id,
    stepId: step_id,
    gate: 'event',
    workflow: workflow_name || run_id,
    title: textAt(event, 'content.title') || APPROVAL_TITLE,
    message: textAt(event, 'content.message'),
    timeoutSecs: timeout,
    ...(approve_keywords && { approveKeywords: approve_keywords }),
    ...(reject_keywords && { rejectKeywords: reject_keywords }),
    ...(channels && { channels }),
    ...channelIdOf(event),
  })
  return {
    channels: asked.map(shownTarget),
    approval: {
      run_id,
      step_id,
      state: approval.state,
      expires_at: isoTime(approval.expiresAtMs),
      status_url: `/api/approvals/${encodeURIComponent(run_id)}/${encodeURIComponent(step_id)}`,
    },
  }
}

async function notifyPeople(runtime: Runtime, event: Body, { trace }: RouteRequest): Promise<Pick<Answer, 'channels'>> {
  const { channels = [] } = event
  const title = textAt(event, 'content.title')
  const message = textAt(event, 'content.message')
  const tracing = runtime.snapshot().wantsTraces && { trace: formatTraceContext(trace) }
  const targets = await notify({ channels, title, message, ...channelIdOf(event), ...tracing }, runtime)
  return { channels: targets.map(shownTarget) }
}

const channelIdOf = ({ channel_id }: Body) => (channel_id === undefined ? {} : { channelId: String(channel_id) })

const shownTarget = ({ channel, status, detail, outbox }: AskedTarget): Answer['channels'][number] => ({
  channel,
  status,
  detail,
  ...(outbox && { outbox: [...outbox] }),
})
