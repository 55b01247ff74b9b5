/**
 * The events that subscribers of `/api/events` and `/ws/events` receive (docs/contract.md#events). Types, the OpenAPI document and
 * the documentation are made from this schema.
 */
import * as v from 'valibot'

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/**
 * How the answer of a turn ended. `stop`: it is complete. `length`: the model has used up its output tokens. `content_filter`: the
 * filter of the provider cut it. `refusal`: the model declined to answer further.
 */
export const finishReasonSchema = v.picklist(['stop', 'length', 'content_filter', 'refusal', 'silent'])
export type FinishReason = v.InferOutput<typeof finishReasonSchema>

const text = v.string()
const nullableText = v.nullable(v.string())
const number = v.number()

/** The kinds of notices to operators, as in `[notify] kinds`. */
export const NOTICE_KINDS = ['refused', 'budget', 'given_up', 'channel', 'expired', 'loop', 'config', 'clock', 'people'] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

export interface OperatorNotice {
  readonly kind: NoticeKind
  /** The thing that the notice is about. Operators get one notice about it in `[notify] every_mins`. */
  readonly about: string
  /** One or two sentences: the problem, and its cure. */
  readonly text: string
  /** The channel that does not work, which cannot carry the notice. */
  readonly broken?: string
}

/** Makes one member of the union; the description says when the event is emitted. */
const event = <const Type extends string, const Entries extends v.ObjectEntries>(type: Type, description: string, entries: Entries) =>
  v.pipe(v.object({ type: v.literal(type), ...entries }), v.readonly(), v.description(description))

/** The members of every event of a turn. */
const turn = {
  turn_id: text,
  session_id: nullableText,
  agent: v.optional(v.pipe(text, v.description('the agent of the turn; absent for `main`'))),
} as const
/** The members of every event of an approval. */
const approval = { run_id: text, step_id: text } as const

const knownEventSchema = v.variant('type', [
  event('turn_started', 'A turn begins', { ...turn, source: text }),
  event('turn_completed', 'A turn has ended, and its answer is stored', {
    ...turn,
    source: text,
    model: text,
    took_ms: number,
    input_tokens: number,
    output_tokens: number,
    cost_usd: number,
    finish_reason: v.pipe(finishReasonSchema, v.description('`stop`: the answer is complete')),
  }),
  event('turn_failed', 'A turn has ended without an answer', {
    ...turn,
    source: text,
    code: text,
    error: text,
    refused_for: v.optional(v.pipe(text, v.description('why the model refuses, such as `credentials`: the turn would be refused again'))),
    inbox: v.optional(v.pipe(number, v.description('the number of the message that the turn was to answer'))),
  }),
  event('budget_spent', 'A limit of `[cost]` is reached: no model is asked until then', {
    period: v.picklist(['day', 'month']),
    limit_usd: number,
    until: v.pipe(text, v.description('RFC 3339')),
  }),
  event('tool_started', 'A tool call of a turn begins', { ...turn, tool: text }),
  event('tool_completed', 'A tool call has ended', { ...turn, tool: text, outcome: v.picklist(['ok', 'error']), took_ms: number }),
  event('session_summarized', 'The oldest messages of a session were summarised; they stay stored', {
    ...turn,
    session_id: text,
    messages: v.pipe(number, v.description('how many messages the summary covers, from the first of the session')),
    model: text,
    input_tokens: number,
    output_tokens: number,
    cost_usd: number,
  }),
  event('channel_event', '`POST /api/channel-events`; `payload` is the body as it was posted', {
    payload: v.pipe(v.record(v.string(), v.unknown()), v.readonly()),
  }),
  event('config_reloaded', 'A changed configuration is in force', {
    sections: v.pipe(v.array(v.string()), v.readonly()),
    rebuilt: v.pipe(v.array(v.string()), v.readonly()),
  }),
  event('config_rejected', 'A changed configuration is not valid; the one in force stays', { error: text }),
  event('feature_failed', 'A feature could not be built or registered', { feature: text, error: text }),
  event('delivery', 'A message of the inbox or a reply of the outbox has a new state; `number` is its number there', {
    direction: v.picklist(['inbound', 'outbound']),
    channel: text,
    number,
    state: v.picklist(['sent', 'ambiguous', 'dead']),
    error: nullableText,
  }),
  event('channel_health', 'A channel went down, sends replies of unknown outcome, or works again', {
    channel: text,
    state: v.picklist(['ok', 'connecting', 'degraded', 'down']),
    detail: nullableText,
  }),
  event('channel_gap', 'Messages of a channel may be missing permanently', {
    channel: text,
    since: v.pipe(nullableText, v.description('RFC 3339: messages after this time may be missing; null: unknown')),
    why: text,
  }),
  event(
    'limit_reached',
    'A client or a pool of clients has reached a limit of `[limits]`; at most once an hour, or a day for `usd_per_day`',
    {
      client: v.pipe(text, v.description('as in `GET /api/limits`')),
      limit: v.picklist([
        'turns_per_hour',
        'turns_in_flight',
        'usd_per_day',
        'turns_waiting',
        'waiting_mb',
        'streams',
        'downloads',
        'attachments_mb',
        'commands',
      ]),
      value: number,
      until: v.pipe(text, v.description('RFC 3339: the earliest time of another turn')),
    },
  ),
  event(
    'loop_stopped',
    'A conversation, or one writer of a shared room, is paused, because the messages come as quickly as those of a program',
    {
      channel: text,
      session_id: text,
      sender: text,
      held: v.optional(
        v.pipe(text, v.description('what `sluice limits reset` takes: the session, or the one that the writer would have alone')),
      ),
      until: v.pipe(text, v.description('RFC 3339: the end of the pause')),
    },
  ),
  event('people_changed', 'Accounts of a person were linked, confirmed for each other, or separated', {
    change: v.picklist(['linked', 'confirmed', 'unlinked']),
    account: v.pipe(text, v.description('the account that did it')),
    others: v.pipe(v.array(text), v.description('the accounts that it was or is linked with')),
  }),
  event('operator_notice', 'Operators are told of something that needs them, as `[notify]` says', {
    kind: v.picklist(NOTICE_KINDS),
    about: v.pipe(text, v.description('what the notice is about, such as a channel; each thing is told once in `[notify] every_mins`')),
    text,
  }),
  event('clock_jumped', 'The clock of the machine was set, or the machine slept', {
    ms: v.pipe(number, v.description('how far the clock is ahead of the time that has passed; negative when it was set back')),
  }),
  event('human_approval_request', 'An approval was opened; `title` and `message` are the text of its prompt', {
    ...approval,
    workflow_name: text,
    title: text,
    message: text,
    expires_at: v.pipe(nullableText, v.description('RFC 3339; null: it never expires')),
  }),
  event('human_approval_resolved', 'An approval was decided, and the gate has taken the decision', {
    ...approval,
    approved: v.boolean(),
    state: v.picklist(['approved', 'rejected', 'expired', 'cancelled']),
    feedback: nullableText,
    by: v.pipe(text, v.description('`<channel>:<sender>`, `device:<id>`, `cli:<user>`, `timeout`, `system`')),
  }),
  event('sop_run', 'A run of a procedure has changed', {
    run_id: text,
    sop: text,
    status: v.picklist(['waiting', 'running', 'waiting_approval', 'paused_checkpoint', 'completed', 'failed', 'cancelled', 'expired']),
    step: number,
    steps: number,
    reason: nullableText,
  }),
  event('sop_step', 'A step of a run begins, or has ended', {
    run_id: text,
    sop: text,
    step: number,
    status: v.picklist(['started', 'completed', 'failed', 'skipped']),
  }),
  event('sop_skipped', 'A procedure matched, and its event was not taken', {
    sop: text,
    source: v.picklist(['manual', 'webhook', 'cron', 'mqtt', 'peripheral']),
    reason: text,
  }),
  event('sops_reloaded', 'The definitions of procedures were loaded again', { loaded: number, broken: number }),
  event('device_paired', 'A device was paired', { device_id: text, name: text }),
  event('device_revoked', 'The token of a device is refused from now on', { device_id: text }),
])

/** A type for the prefix, because valibot infers `string`, which would make `type` useless as a discriminator. */
const ownType = v.pipe(v.string(), v.regex(/^x_/)) as unknown as v.GenericSchema<`x_${string}`>
const ownEventSchema = v.pipe(v.looseObject({ type: ownType }), v.readonly(), v.description('An event of a program that embeds Sluice'))

/** An event. `type` is the discriminator. Members are JSON without secrets, and only channel events and approvals have message text. */
export const eventSchema = v.union([knownEventSchema, ownEventSchema])

export type SluiceEvent = v.InferOutput<typeof eventSchema>

export type EventType = SluiceEvent['type']

/** Lists each known type with its description and its members other than `type`, for documentation. */
export const eventMembers = (): readonly { readonly type: string; readonly description: string; readonly members: readonly string[] }[] =>
  knownEventSchema.options.map((member) => ({
    type: member.entries.type.literal,
    description: v.getDescription(member) ?? '',
    members: Object.keys(member.entries).filter((name) => name !== 'type'),
  }))

/** An event as subscribers receive it. `id` is `<run>-<number>`, and the number grows by one within a run of the daemon. */
export type EventEnvelope = SluiceEvent & { readonly id: string; readonly timestamp: string }

export interface Events {
  /**
   * Emits an event to every subscribed operator and to the client `owner`, the paired device whose turn or approval the event
   * concerns. Without an owner no client receives it.
   */
  emit(event: SluiceEvent, owner?: string): void
}
