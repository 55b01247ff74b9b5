/** All exported series and how each observation counts in them. Their names are part of the contract, because dashboards use them. */
import type { Observation, Vitals } from '@sluice/sdk'
import { createLabelSets } from './label-sets.ts'
import { registerProcessMetrics } from './process-metrics.ts'
import type * as Prom from './prom-client.ts'
import { registerVitals } from './vitals-metrics.ts'

export interface Meters {
  /** Never throws. A negative or infinite number and NaN count as 0. */
  record(observation: Observation): void
  /** Counts observations that were dropped before the library was loaded. */
  countDropped(count: number): void
  render(): Promise<{ readonly contentType: string; readonly body: string }>
}

const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const LONG_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const COMMIT_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]
const COMMIT_UNITS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]

export function createMeters(prom: typeof Prom, vitals: () => Vitals | undefined): Meters {
  const registry = new prom.Registry()
  const series = createSeries(prom, registry)
  registerVitals(prom, registry, vitals)
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
  const counter = (name: string, help: string, ...labelNames: string[]): Add => {
    const metric = new prom.Counter({ name: `sluice_${name}`, help, labelNames, registers })
    const labelsOf = createLabelSets(labelNames)
    return (amount, ...values) => metric.inc(labelsOf(...values), positive(amount))
  }
  const histogram = (name: string, help: string, buckets: number[], ...labelNames: string[]): Add => {
    const metric = new prom.Histogram({ name: `sluice_${name}`, help, buckets, labelNames, registers })
    const labelsOf = createLabelSets(labelNames)
    return (amount, ...values) => metric.observe(labelsOf(...values), positive(amount))
  }
  return {
    requests: counter('http_requests_total', 'HTTP requests answered', 'route', 'method', 'status'),
    requestSeconds: histogram('http_request_duration_seconds', 'Time to answer HTTP requests', SHORT_SECONDS, 'route', 'method'),
    rateLimited: counter('rate_limited_total', 'HTTP requests refused by a rate limit', 'route'),
    turns: counter('turns_total', 'Agent turns ended', 'source', 'provider', 'model', 'outcome'),
    turnSeconds: histogram('turn_duration_seconds', 'Time of agent turns', LONG_SECONDS, 'source'),
    modelCalls: counter('llm_requests_total', 'Calls of a model', 'provider', 'model', 'outcome'),
    modelSeconds: histogram('llm_request_duration_seconds', 'Time of model calls', LONG_SECONDS, 'provider', 'model'),
    inputTokens: counter('tokens_input_total', 'Tokens sent to models', 'provider', 'model'),
    outputTokens: counter('tokens_output_total', 'Tokens received from models', 'provider', 'model'),
    costUsd: counter('cost_usd_total', 'Cost of model calls in US dollars', 'provider', 'model'),
    toolCalls: counter('tool_calls_total', 'Tool calls ended', 'tool', 'outcome'),
    toolSeconds: histogram('tool_duration_seconds', 'Time of tool calls', LONG_SECONDS, 'tool'),
    deliveries: counter('deliveries_total', 'Messages received from and sent to channels', 'channel', 'direction', 'outcome'),
    ingress: counter('ingress_total', 'Webhook requests of channels by verdict', 'channel', 'verdict'),
    unsigned: counter('ingress_unsigned_total', 'Webhook requests accepted without a signature', 'channel'),
    sopRuns: counter('sop_runs_total', 'Runs of procedures ended, and triggers that started none', 'sop', 'outcome'),
    sopSteps: counter('sop_steps_total', 'Steps of procedures ended', 'sop', 'outcome'),
    approvals: counter('approvals_total', 'Approvals decided', 'state'),
    limits: counter('limits_reached_total', 'Clients that reached a limit, and paused conversations', 'cause'),
    commitSeconds: histogram('store_commit_seconds', 'Time of commits to the store', COMMIT_SECONDS),
    commitUnits: histogram('store_commit_units', 'Writes that shared one commit', COMMIT_UNITS),
    errors: counter('errors_total', 'Errors by component', 'component'),
    dropped: counter('observations_dropped_total', 'Observations lost before metrics were ready'),
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
