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

export function describeSpan(seen: SpanObservation): SpanDescription {
  switch (seen.kind) {
    case 'request':
      return describeRequest(seen)
    case 'ingress':
      return describeIngress(seen)
    case 'delivery': {
      const operation = seen.direction === 'inbound' ? 'process' : 'send'
      const about = { ...messaging(seen.channel, operation), 'sluice.direction': seen.direction }
      return described(`${operation} ${seen.channel}`, operation === 'send' ? 'producer' : 'consumer', about, seen.outcome)
    }
    case 'turn': {
      const about = { ...model(seen, 'invoke_agent'), 'sluice.source': seen.source, 'sluice.iterations': seen.iterations }
      return described(`turn ${seen.source}`, 'internal', about, seen.outcome)
    }
    case 'model_call': {
      const about: Attributes = model(seen, 'chat')
      // The former name of `gen_ai.provider.name`, which many tools still use.
      about['gen_ai.system'] = seen.provider || UNKNOWN
      about['gen_ai.usage.input_tokens'] = seen.inputTokens
      about['gen_ai.usage.output_tokens'] = seen.outputTokens
      if (seen.costUsd > 0) about['sluice.cost_usd'] = seen.costUsd
      return described(`chat ${seen.model || UNKNOWN}`, 'client', about, seen.outcome)
    }
    case 'tool_call':
      return described(
        `execute_tool ${seen.tool}`,
        'internal',
        { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': seen.tool },
        seen.outcome,
      )
    case 'sop_run':
      return describeProcedure(`sop_run ${seen.sop}`, { 'sluice.sop': seen.sop, 'sluice.outcome': seen.outcome })
    case 'sop_step':
      return describeProcedure(`sop_step ${seen.sop} ${seen.step}`, {
        'sluice.sop': seen.sop,
        'sluice.step': seen.step,
        'sluice.outcome': seen.outcome,
      })
  }
}

const model = (seen: { readonly provider: string; readonly model: string }, operation: string) => ({
  'gen_ai.operation.name': operation,
  'gen_ai.provider.name': seen.provider || UNKNOWN,
  'gen_ai.request.model': seen.model || UNKNOWN,
})

const messaging = (channel: string, operation: 'receive' | 'process' | 'send') => ({
  'messaging.system': channel,
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
})

/** Adds the outcome to the attributes, unless it is `ok`. */
function described(name: string, kind: SpanDescription['kind'], attributes: Attributes, outcome: Outcome): SpanDescription {
  // The value of the conventions for an error without a name.
  if (outcome === 'error') attributes['error.type'] = '_OTHER'
  else if (outcome === 'aborted') attributes['sluice.outcome'] = outcome
  return { name, kind, isError: outcome === 'error', attributes }
}

function describeRequest({ method, route, status }: Extract<SpanObservation, { kind: 'request' }>): SpanDescription {
  const attributes: Attributes = { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status }
  const isError = status >= SERVER_ERROR
  if (isError) attributes['error.type'] = String(status)
  return { name: `${method} ${route}`, kind: 'server', isError, attributes }
}

function describeIngress({ channel, verdict, signed }: Extract<SpanObservation, { kind: 'ingress' }>): SpanDescription {
  const attributes: Attributes = { ...messaging(channel, 'receive'), 'sluice.verdict': verdict, 'sluice.signed': signed }
  const isError = verdict === 'refused'
  if (isError) attributes['error.type'] = verdict
  return { name: `receive ${channel}`, kind: 'consumer', isError, attributes }
}

function describeProcedure(name: string, attributes: Attributes): SpanDescription {
  const isError = attributes['sluice.outcome'] === 'failed'
  if (isError) attributes['error.type'] = '_OTHER'
  return { name, kind: 'internal', isError, attributes }
}
