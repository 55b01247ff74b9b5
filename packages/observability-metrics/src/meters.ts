/** How each observation counts in the series of the table. */
import type { Observation } from '@sluice/sdk'
import { createLabelSets } from './label-sets.ts'
import { registerProcessMetrics } from './process-metrics.ts'
import type * as Prom from './prom-client.ts'
import { METRICS, type NameOf } from './table.ts'
import { registerVitals, type VitalsSource } from './vitals-metrics.ts'

export interface Meters {
  /** Never throws. A negative or infinite number and NaN count as 0. */
  record(observation: Observation): void
  /** Counts observations that were dropped before the library was loaded. */
  countDropped(count: number): void
  render(): Promise<{ readonly contentType: string; readonly body: string }>
}

export function createMeters(prom: typeof Prom, source: VitalsSource): Meters {
  const registry = new prom.Registry()
  const series = createSeries(prom, registry)
  registerVitals(prom, registry, source)
  registerProcessMetrics(prom, registry)
  return {
    record: (observation) => record(series, observation),
    countDropped: (count) => series.dropped(count),
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  }
}

/** Adds an amount to a metric. The label values are in the order of their declaration. */
type Add = (amount: number, ...labels: readonly string[]) => void

function createSeries(prom: typeof Prom, registry: Prom.Registry) {
  const registers = [registry]
  const counter = (name: NameOf<'counter'>): Add => {
    const { help, labels } = METRICS[name]
    const metric = new prom.Counter({ name, help, labelNames: labels, registers })
    const labelsOf = createLabelSets(labels)
    return (amount, ...values) => metric.inc(labelsOf(...values), positive(amount))
  }
  const histogram = (name: NameOf<'histogram'>): Add => {
    const { help, labels, buckets } = METRICS[name]
    const metric = new prom.Histogram({ name, help, buckets: [...buckets], labelNames: labels, registers })
    const labelsOf = createLabelSets(labels)
    return (amount, ...values) => metric.observe(labelsOf(...values), positive(amount))
  }
  return {
    requests: counter('sluice_http_requests_total'),
    requestSeconds: histogram('sluice_http_request_duration_seconds'),
    rateLimited: counter('sluice_rate_limited_total'),
    turns: counter('sluice_turns_total'),
    turnSeconds: histogram('sluice_turn_duration_seconds'),
    modelCalls: counter('sluice_llm_requests_total'),
    modelSeconds: histogram('sluice_llm_request_duration_seconds'),
    inputTokens: counter('sluice_tokens_input_total'),
    outputTokens: counter('sluice_tokens_output_total'),
    costUsd: counter('sluice_cost_usd_total'),
    toolCalls: counter('sluice_tool_calls_total'),
    toolSeconds: histogram('sluice_tool_duration_seconds'),
    deliveries: counter('sluice_deliveries_total'),
    repeated: counter('sluice_replies_repeated_total'),
    undelivered: counter('sluice_replies_undelivered_total'),
    ingress: counter('sluice_ingress_total'),
    unsigned: counter('sluice_ingress_unsigned_total'),
    sopRuns: counter('sluice_sop_runs_total'),
    sopSteps: counter('sluice_sop_steps_total'),
    approvals: counter('sluice_approvals_total'),
    limits: counter('sluice_limits_reached_total'),
    notices: counter('sluice_operator_notices_total'),
    commitSeconds: histogram('sluice_store_commit_seconds'),
    commitUnits: histogram('sluice_store_commit_units'),
    errors: counter('sluice_errors_total'),
    dropped: counter('sluice_observations_dropped_total'),
  }
}

function record(series: ReturnType<typeof createSeries>, observation: Observation): void {
  switch (observation.kind) {
    case 'request':
      series.requests(1, observation.route, observation.method, String(observation.status))
      series.requestSeconds(observation.span.tookMs / 1000, observation.route, observation.method)
      break
    case 'rate_limited':
      series.rateLimited(1, observation.route)
      break
    case 'turn':
      series.turns(1, observation.source, observation.provider, observation.model, observation.outcome)
      series.turnSeconds(observation.span.tookMs / 1000, observation.source)
      break
    case 'model_call':
      series.modelCalls(1, observation.provider, observation.model, observation.outcome)
      series.modelSeconds(observation.span.tookMs / 1000, observation.provider, observation.model)
      series.inputTokens(observation.inputTokens, observation.provider, observation.model)
      series.outputTokens(observation.outputTokens, observation.provider, observation.model)
      series.costUsd(observation.costUsd, observation.provider, observation.model)
      break
    case 'tool_call':
      series.toolCalls(1, observation.tool, observation.outcome)
      series.toolSeconds(observation.span.tookMs / 1000, observation.tool)
      break
    case 'delivery':
      series.deliveries(1, observation.channel, observation.direction, observation.outcome)
      break
    case 'reply':
      series[observation.what](1, observation.channel)
      break
    case 'ingress':
      series.ingress(1, observation.channel, observation.verdict)
      if (!observation.signed) series.unsigned(1, observation.channel)
      break
    case 'sop_run':
      series.sopRuns(1, observation.sop, observation.outcome)
      break
    case 'sop_step':
      series.sopSteps(1, observation.sop, observation.outcome)
      break
    case 'approval':
      series.approvals(1, observation.state)
      break
    case 'limit':
      series.limits(1, observation.cause)
      break
    case 'notice':
      series.notices(1, observation.notice)
      break
    case 'commit':
      series.commitSeconds(observation.tookMs / 1000)
      series.commitUnits(observation.units)
      break
    case 'error':
      series.errors(1, observation.component)
      break
  }
}

const positive = (amount: number): number => (amount > 0 && amount < Number.POSITIVE_INFINITY ? amount : 0)
