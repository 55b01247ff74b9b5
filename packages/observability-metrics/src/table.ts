/**
 * Every metric of `GET /metrics`. The series and `docs/metrics.md` come from this table. Its names are part of the contract, because
 * dashboards and alerts use them.
 */

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** The object of the count or measurement, for the HELP line and the documentation. */
  readonly help: string
  readonly labels?: readonly string[]
  /** The upper bounds of a histogram. */
  readonly buckets?: readonly number[]
}

const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const LONG_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const COMMIT_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]
const COMMIT_UNITS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]

const counter = <const Labels extends readonly string[]>(help: string, ...labels: Labels) => ({ type: 'counter', help, labels }) as const
const gauge = <const Labels extends readonly string[]>(help: string, ...labels: Labels) => ({ type: 'gauge', help, labels }) as const
const histogram = <const Labels extends readonly string[]>(help: string, buckets: readonly number[], ...labels: Labels) =>
  ({ type: 'histogram', help, buckets, labels }) as const

export const METRICS = {
  sluice_build_info: gauge('Always 1; the labels are the version and the profile of the build', 'version', 'profile'),

  sluice_http_requests_total: counter('HTTP requests answered', 'route', 'method', 'status'),
  sluice_http_request_duration_seconds: histogram('Time to answer HTTP requests', SHORT_SECONDS, 'route', 'method'),
  sluice_rate_limited_total: counter('HTTP requests refused by a rate limit', 'route'),
  sluice_sse_clients: gauge('Clients subscribed by server-sent events'),
  sluice_ws_clients: gauge('Clients connected by WebSocket'),
  sluice_events_dropped: gauge('Events that slow subscribers missed since the start'),

  sluice_turns_total: counter('Agent turns ended', 'source', 'provider', 'model', 'outcome'),
  sluice_turn_duration_seconds: histogram('Time of agent turns', LONG_SECONDS, 'source'),
  sluice_turns_running: gauge('Agent turns running'),
  sluice_turns_queued: gauge('Agent turns waiting'),
  sluice_sessions_active: gauge('Sessions with a turn running or waiting'),
  sluice_llm_requests_total: counter('Calls of a model', 'provider', 'model', 'outcome'),
  sluice_llm_request_duration_seconds: histogram('Time of model calls', LONG_SECONDS, 'provider', 'model'),
  sluice_tokens_input_total: counter('Tokens sent to models', 'provider', 'model'),
  sluice_tokens_output_total: counter('Tokens received from models', 'provider', 'model'),
  sluice_cost_usd_total: counter('Cost of model calls in US dollars', 'provider', 'model'),
  sluice_provider_failing: gauge('1: the last turn that asked the provider of the model got no answer; else 0'),
  sluice_tool_calls_total: counter('Tool calls ended', 'tool', 'outcome'),
  sluice_tool_duration_seconds: histogram('Time of tool calls', LONG_SECONDS, 'tool'),
  sluice_sandbox_info: gauge('Always 1; the label is the measured sandbox backend of commands', 'backend'),
  sluice_sandbox_state: gauge(
    'Always 1; the label is confined, fallback (in another sandbox than the configuration names), unconfined, or refusing (no command runs)',
    'state',
  ),

  sluice_channel_state: gauge(
    '1 for the present state of a channel: ok, connecting, degraded or down; 0 for the others',
    'channel',
    'state',
  ),
  sluice_link_state: gauge('1 for the present state of another connection, such as to an MQTT broker; 0 for the others', 'link', 'state'),
  sluice_ingress_total: counter('Webhook requests of channels by verdict', 'channel', 'verdict'),
  sluice_ingress_unsigned_total: counter('Webhook requests accepted without a signature', 'channel'),
  sluice_deliveries_total: counter('Attempts to process received messages and to send replies', 'channel', 'direction', 'outcome'),
  sluice_replies_repeated_total: counter('Replies sent again after an answer 503, which may have arrived twice', 'channel'),
  sluice_replies_undelivered_total: counter('Replies of which the platform reported later that it did not deliver them', 'channel'),
  sluice_messages_pending: gauge('Messages of channels waiting for their turn'),
  sluice_replies_pending: gauge('Replies waiting to be sent'),
  sluice_oldest_message_seconds: gauge('Age of the oldest message that waits for the end of its turn'),
  sluice_oldest_reply_seconds: gauge('Age of the oldest reply that waits to be sent'),
  sluice_dead_letters: gauge(
    'Messages (queue="inbox") and replies (queue="outbox") that are not tried again until an operator replays them',
    'queue',
  ),
  sluice_ambiguous_replies: gauge('Replies that may have been sent, which an operator has to decide about'),

  sluice_sop_runs_total: counter('Runs of procedures that ended or had to wait, and triggers that started none', 'sop', 'outcome'),
  sluice_sop_runs_waiting: gauge('Runs of procedures that a limit holds back'),
  sluice_oldest_sop_run_seconds: gauge('Age of the oldest run of a procedure that a limit holds back'),
  sluice_sop_steps_total: counter('Steps of procedures ended', 'sop', 'outcome'),
  sluice_approvals_total: counter('Approvals decided', 'state'),
  sluice_approvals_pending: gauge('Approvals that wait for a person'),
  sluice_limits_reached_total: counter('Clients that reached a limit, and paused conversations', 'cause'),
  sluice_operator_notices_total: counter('Things that operators were told of', 'kind'),

  sluice_store_commit_seconds: histogram('Time of commits to the store', COMMIT_SECONDS),
  sluice_store_commit_units: histogram('Writes that shared one commit', COMMIT_UNITS),
  sluice_commits_queued: gauge('Writes waiting for their commit'),
  sluice_cluster_info: gauge('Always 1; present on a node of a cluster', 'cluster', 'node'),
  sluice_cluster_workers: gauge('Live nodes that share the shards, as this node has seen last'),
  sluice_cluster_beat_age_seconds: gauge('Time since the database took a sign of life of this node; its leases expire after 6 seconds'),
  sluice_cluster_clock_offset_seconds: gauge('How far the clock of this node is ahead of that of the database; negative when it is behind'),
  sluice_shards_owned: gauge('Shards whose work this node runs'),
  sluice_shards_share: gauge('Shards that this node should own'),
  sluice_store_failing: gauge('1: the store takes no writes, such as on a full disk; else 0'),
  sluice_config_rejected: gauge('1: the configuration file is not valid, so the configuration before it stays in force; else 0'),
  sluice_last_backup_timestamp_seconds: gauge('Time of the last complete backup since 1970; absent if there was none'),
  sluice_backup_failing: gauge('1: the last attempt to make a backup failed; else 0'),
  sluice_errors_total: counter('Errors by component', 'component'),
  sluice_observations_dropped_total: counter('Observations lost before metrics were ready'),

  process_cpu_user_seconds_total: counter('CPU time in user mode'),
  process_cpu_system_seconds_total: counter('CPU time in system mode'),
  process_cpu_seconds_total: counter('CPU time'),
  process_start_time_seconds: gauge('Start of the process since 1970'),
  process_resident_memory_bytes: gauge('Resident memory'),
  process_open_fds: gauge('Open file descriptors (Linux)'),
  nodejs_heap_size_total_bytes: gauge('Size of the heap'),
  nodejs_heap_size_used_bytes: gauge('Used part of the heap'),
  nodejs_external_memory_bytes: gauge('Memory of objects outside the heap'),
  nodejs_active_resources: gauge('Resources that keep the event loop alive'),
  nodejs_eventloop_utilization: gauge('Busy share of the event loop since the last reading'),
  nodejs_version_info: gauge('Version of Node', 'version'),
} as const satisfies Record<string, MetricRow>

/** The names of all metrics of a type. */
export type NameOf<Type extends MetricRow['type']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['type'] extends Type ? Name : never
}[keyof typeof METRICS]
