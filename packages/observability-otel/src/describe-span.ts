/**
 * Names and describes the spans of a trace by the semantic conventions of OpenTelemetry for HTTP, messaging and generative
 * AI, with attributes named `sluice.…` for the rest. Observations contain no message text and no secret, so spans do not.
 */
import type { Observation, Outcome, Span } from '@sluice/sdk'

type WithSpan<Kind> = Kind extends Observation ? ('span' extends keyof Kind ? Kind & { readonly span: Span } : never) : never

/** An observation that is a span. */
export type SpanObservation = WithSpan<Observation>

export const isSpanObservation = (observation: Observation): observation is SpanObservation =>
  'span' in observation && observation.span !== undefined

export interface SpanDescription {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly isError: boolean
  readonly attributes: Readonly<Attributes>
}

type Attributes = Record<string, string | number | boolean>

const SERVER_ERROR = 500
/** The model and provider of a turn that ended before it called a model. */
const UNKNOWN = 'unknown'
/** The value of the conventions for an error without a name. */
const UNNAMED_ERROR = '_OTHER'

type Of<Kind extends SpanObservation['kind']> = Extract<SpanObservation, { kind: Kind }>

export function describeSpan(observation: SpanObservation): SpanDescription {
  switch (observation.kind) {
    case 'request':
      return describeRequest(observation)
    case 'ingress':
      return describeIngress(observation)
    case 'delivery':
      return describeDelivery(observation)
    case 'turn':
      return describeTurn(observation)
    case 'model_call':
      return describeModelCall(observation)
    case 'tool_call':
      return describeToolCall(observation)
    case 'sop_run':
    case 'sop_step':
      return describeProcedure(observation)
  }
}

const modelAttributes = (provider: string, model: string, operation: string) => ({
  'gen_ai.operation.name': operation,
  'gen_ai.provider.name': provider || UNKNOWN,
  'gen_ai.request.model': model || UNKNOWN,
})

const messagingAttributes = (channel: string, operation: 'receive' | 'process' | 'send') => ({
  'messaging.system': channel,
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
})

/** Adds the outcome to the attributes, unless it is `ok`. */
function withOutcome(name: string, kind: SpanDescription['kind'], attributes: Attributes, outcome: Outcome): SpanDescription {
  if (outcome === 'error') attributes['error.type'] = UNNAMED_ERROR
  else if (outcome === 'aborted') attributes['sluice.outcome'] = outcome
  return { name, kind, isError: outcome === 'error', attributes }
}

function describeRequest({ method, route, status }: Of<'request'>): SpanDescription {
  const attributes: Attributes = { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status }
  const isError = status >= SERVER_ERROR
  if (isError) attributes['error.type'] = String(status)
  return { name: `${method} ${route}`, kind: 'server', isError, attributes }
}

function describeIngress({ channel, verdict, signed }: Of<'ingress'>): SpanDescription {
  const attributes: Attributes = { ...messagingAttributes(channel, 'receive'), 'sluice.verdict': verdict, 'sluice.signed': signed }
  const isError = verdict === 'refused'
  if (isError) attributes['error.type'] = verdict
  return { name: `receive ${channel}`, kind: 'consumer', isError, attributes }
}

function describeDelivery({ channel, direction, outcome }: Of<'delivery'>): SpanDescription {
  const operation = direction === 'inbound' ? 'process' : 'send'
  const attributes = { ...messagingAttributes(channel, operation), 'sluice.direction': direction }
  return withOutcome(`${operation} ${channel}`, operation === 'send' ? 'producer' : 'consumer', attributes, outcome)
}

function describeTurn({ provider, model, source, iterations, outcome }: Of<'turn'>): SpanDescription {
  const attributes = { ...modelAttributes(provider, model, 'invoke_agent'), 'sluice.source': source, 'sluice.iterations': iterations }
  return withOutcome(`turn ${source}`, 'internal', attributes, outcome)
}

function describeModelCall({ provider, model, inputTokens, outputTokens, costUsd, outcome }: Of<'model_call'>): SpanDescription {
  const attributes: Attributes = {
    ...modelAttributes(provider, model, 'chat'),
    // The former name of `gen_ai.provider.name`, which many tools still use.
    'gen_ai.system': provider || UNKNOWN,
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
  }
  if (costUsd > 0) attributes['sluice.cost_usd'] = costUsd
  return withOutcome(`chat ${model || UNKNOWN}`, 'client', attributes, outcome)
}

function describeToolCall({ tool, outcome }: Of<'tool_call'>): SpanDescription {
  const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool }
  return withOutcome(`execute_tool ${tool}`, 'internal', attributes, outcome)
}

function describeProcedure(observation: Of<'sop_run' | 'sop_step'>): SpanDescription {
  const { kind, sop, outcome } = observation
  const attributes: Attributes = { 'sluice.sop': sop }
  if (kind === 'sop_step') attributes['sluice.step'] = observation.step
  attributes['sluice.outcome'] = outcome
  const isError = outcome === 'failed'
  if (isError) attributes['error.type'] = UNNAMED_ERROR
  const name = kind === 'sop_step' ? `sop_step ${sop} ${observation.step}` : `sop_run ${sop}`
  return { name, kind: 'internal', isError, attributes }
}
