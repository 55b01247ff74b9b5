import type { Observation, Observer, Trace, Vitals } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { parseTextMetrics } from '@sluice/testkit/text-metrics'
import { describe, expect, test } from 'vitest'
import feature from './index.ts'
import { LABEL_SETS_MAX } from './label-sets.ts'
import { METRICS } from './table.ts'
import { QUEUE_MAX, TextMetrics } from './text-metrics.ts'

const trace: Trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const span = { trace, startMs: 0, tookMs: 30 }
const model = { provider: 'openai', model: 'small' }
const error = (component: string): Observation => ({ kind: 'error', component })

const read = async (observer: Observer) => parseTextMetrics((await observer.render?.())?.body ?? '').values
const sum = (values: ReadonlyMap<string, number>, metric: string) =>
  [...values].reduce((total, [series, value]) => (series.startsWith(`${metric}{`) ? total + value : total), 0)

describe('TextMetrics', () => {
  test('answers with the content type of the format', async () => {
    const answer = await new TextMetrics(testHost(), false).render?.()
    expect(answer?.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  test('counts each observation in its series', async () => {
    const observer = new TextMetrics(testHost(), false)
    observer.record({ kind: 'request', method: 'POST', route: '/webhook', status: 200, span })
    observer.record({ kind: 'rate_limited', route: '/webhook' })
    observer.record({ kind: 'turn', source: 'webhook', ...model, outcome: 'ok', iterations: 2, span })
    observer.record({ kind: 'model_call', ...model, outcome: 'ok', inputTokens: 12, outputTokens: 34, costUsd: 0.5, span })
    observer.record({ kind: 'model_call', ...model, outcome: 'ok', inputTokens: 1, outputTokens: 2, costUsd: 0.25, span })
    observer.record({ kind: 'tool_call', tool: 'shell', outcome: 'error', span })
    observer.record({ kind: 'delivery', channel: 'roomchat', direction: 'inbound', number: 1, outcome: 'ok', span })
    observer.record({ kind: 'sop_run', sop: 'deploy', outcome: 'completed' })
    observer.record({ kind: 'approval', state: 'rejected' })
    observer.record({ kind: 'commit', units: 7, tookMs: 2 })
    observer.record(error('gateway'))
    expect(Object.fromEntries(await read(observer))).toMatchObject({
      'sluice_http_requests_total{route="/webhook",method="POST",status="200"}': 1,
      'sluice_http_request_duration_seconds_bucket{le="0.025",route="/webhook",method="POST"}': 0,
      'sluice_http_request_duration_seconds_bucket{le="0.05",route="/webhook",method="POST"}': 1,
      'sluice_http_request_duration_seconds_sum{route="/webhook",method="POST"}': 0.03,
      'sluice_rate_limited_total{route="/webhook"}': 1,
      'sluice_turns_total{source="webhook",provider="openai",model="small",outcome="ok"}': 1,
      'sluice_turn_duration_seconds_count{source="webhook"}': 1,
      'sluice_llm_requests_total{provider="openai",model="small",outcome="ok"}': 2,
      'sluice_llm_request_duration_seconds_count{provider="openai",model="small"}': 2,
      'sluice_tokens_input_total{provider="openai",model="small"}': 13,
      'sluice_tokens_output_total{provider="openai",model="small"}': 36,
      'sluice_cost_usd_total{provider="openai",model="small"}': 0.75,
      'sluice_tool_calls_total{tool="shell",outcome="error"}': 1,
      'sluice_tool_duration_seconds_count{tool="shell"}': 1,
      'sluice_deliveries_total{channel="roomchat",direction="inbound",outcome="ok"}': 1,
      'sluice_sop_runs_total{sop="deploy",outcome="completed"}': 1,
      'sluice_approvals_total{state="rejected"}': 1,
      sluice_store_commit_seconds_sum: 0.002,
      sluice_store_commit_units_sum: 7,
      'sluice_errors_total{component="gateway"}': 1,
      sluice_observations_dropped_total: 0,
    })
  })

  test('reads vitals on each rendering, and leaves them out without a source', async () => {
    let running = 1
    const vitals = (): Vitals => ({
      version: '1.2.3',
      profile: 'full',
      startedAtMs: 0,
      turnsRunning: running,
      turnsQueued: 2,
      sessionsActive: 3,
      sseClients: 4,
      wsClients: 5,
      messagesPending: 8,
      repliesPending: 9,
      oldestMessageSecs: 60.5,
      oldestReplySecs: 2,
      commitsQueued: 6,
      cluster: { name: 'c', node: 'n', workers: 3, shardsOwned: 85, shardsShare: 86, beatAgeSecs: 1.5, clockOffsetSecs: -0.2 },
      eventsDropped: 7,
      channels: [
        { name: 'slack', state: 'ok' },
        { name: 'telegram', state: 'down' },
      ],
      links: [{ name: 'mqtt', state: 'connecting' }],
      lastBackupMs: 1_700_000_000_500,
      faults: { store: true, config: false, provider: true, backup: true },
      sandbox: { backend: 'userns', state: 'fallback', detail: 'works' },
    })
    const counted = { messagesPending: 1, oldestMessageSecs: 2, repliesPending: 3, oldestReplySecs: null }
    const backlog = async () => ({
      ...counted,
      ...{ messagesDead: 11, repliesDead: 12, repliesAmbiguous: 13, approvalsPending: 14 },
      ...{ runsWaiting: 15, oldestRunSecs: 16 },
    })
    const observer = new TextMetrics(testHost({ services: { vitals, backlog } }), false)
    await observer.render?.()
    running = 10
    expect(Object.fromEntries(await read(observer))).toMatchObject({
      sluice_turns_running: 10,
      sluice_turns_queued: 2,
      sluice_sessions_active: 3,
      sluice_sse_clients: 4,
      sluice_ws_clients: 5,
      sluice_commits_queued: 6,
      'sluice_cluster_info{cluster="c",node="n"}': 1,
      sluice_cluster_workers: 3,
      sluice_cluster_beat_age_seconds: 1.5,
      sluice_cluster_clock_offset_seconds: -0.2,
      sluice_shards_owned: 85,
      sluice_shards_share: 86,
      sluice_events_dropped: 7,
      'sluice_build_info{version="1.2.3",profile="full"}': 1,
      'sluice_sandbox_info{backend="userns"}': 1,
      'sluice_sandbox_state{state="fallback"}': 1,
      'sluice_channel_state{channel="slack",state="ok"}': 1,
      'sluice_channel_state{channel="telegram",state="ok"}': 0,
      'sluice_channel_state{channel="telegram",state="down"}': 1,
      'sluice_link_state{link="mqtt",state="connecting"}': 1,
      sluice_store_failing: 1,
      sluice_config_rejected: 0,
      sluice_provider_failing: 1,
      sluice_last_backup_timestamp_seconds: 1_700_000_000.5,
      sluice_backup_failing: 1,
      'sluice_dead_letters{queue="inbox"}': 11,
      'sluice_dead_letters{queue="outbox"}': 12,
      sluice_ambiguous_replies: 13,
      sluice_approvals_pending: 14,
      sluice_sop_runs_waiting: 15,
      sluice_oldest_sop_run_seconds: 16,
    })
    expect((await read(new TextMetrics(testHost(), false))).has('sluice_turns_running')).toBe(false)
  })

  test('asks the store once for each rendering, and leaves out what it cannot answer', async () => {
    let asked = 0
    const backlog = async () => {
      asked += 1
      throw new Error('the store cannot be read')
    }
    const observer = new TextMetrics(testHost({ services: { backlog } }), false)
    const values = await read(observer)
    await observer.render?.()
    expect(asked).toBe(2)
    expect([...values.keys()].filter((series) => /dead_letters|ambiguous|approvals_pending/.test(series))).toEqual([])
  })

  test('has a series for each row of the table, and no other', async () => {
    const { body } = await new TextMetrics(testHost(), false).render()
    const declared = [...body.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm)].map(([, name = '', help, type]) => ({
      name,
      help,
      type,
    }))
    const rows = Object.entries(METRICS).map(([name, { help, type }]) => ({ name, help, type }))
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name)
    const isHere = ({ name }: { name: string }) => process.platform === 'linux' || name !== 'process_open_fds'
    expect(declared.toSorted(byName)).toEqual(rows.filter(isHere).toSorted(byName))
  })

  test('reads the process metrics on each rendering', async () => {
    const values = await read(new TextMetrics(testHost(), false))
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
      'nodejs_heap_size_used_bytes',
    ]) {
      expect(values.get(name), name).toBeGreaterThan(0)
    }
    expect(values.get('nodejs_eventloop_utilization')).toBeLessThanOrEqual(1)
  })

  test('leaves no timer after loading and rendering', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => /Timeout|Immediate/.test(name)).length
    const before = timers()
    await new TextMetrics(testHost(), false).render?.()
    expect(timers()).toBeLessThanOrEqual(before)
  })

  test('counts label sets beyond the bound under other', async () => {
    const observer = new TextMetrics(testHost(), false)
    await observer.render?.()
    for (let index = 0; index < LABEL_SETS_MAX + 500; index++) observer.record(error(`part-${index}`))
    observer.record(error('part-3'))
    const values = await read(observer)
    expect([...values.keys()].filter((series) => series.startsWith('sluice_errors_total{'))).toHaveLength(LABEL_SETS_MAX + 1)
    expect(values.get('sluice_errors_total{component="other"}')).toBe(500)
    expect(values.get('sluice_errors_total{component="part-3"}')).toBe(2)
    expect(sum(values, 'sluice_errors_total')).toBe(LABEL_SETS_MAX + 501)
  })

  test('queues observations until the library is loaded, and counts dropped ones', async () => {
    const observer = new TextMetrics(testHost(), false)
    for (let index = 0; index < QUEUE_MAX + 10; index++) observer.record(error('early'))
    const values = await read(observer)
    expect(values.get('sluice_errors_total{component="early"}')).toBe(QUEUE_MAX)
    expect(values.get('sluice_observations_dropped_total')).toBe(10)
  })

  test('uses a separate registry for each instance', async () => {
    const [first, second] = [new TextMetrics(testHost(), false), new TextMetrics(testHost(), false)]
    first.record(error('gateway'))
    expect((await read(first)).get('sluice_errors_total{component="gateway"}')).toBe(1)
    expect((await read(second)).has('sluice_errors_total{component="gateway"}')).toBe(false)
  })

  test('passes metrics_loopback_only to the observer', () => {
    const [observer] = feature.build(testHost(), { metrics_loopback_only: true }).observers ?? []
    expect(observer?.loopbackOnly).toBe(true)
  })
})
