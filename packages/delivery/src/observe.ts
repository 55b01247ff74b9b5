/** Reports to observers what became of requests, messages and replies, with a span where an observer traces. */
import { newTrace } from '@sluice/agent'
import { type Clock, formatTraceContext, type Observation, type Outcome, parseTraceContext, type Trace } from '@sluice/sdk'
import type { DeliveryTelemetry } from './delivery-options.ts'

type Ingress = Extract<Observation, { readonly kind: 'ingress' }>

export interface IngressWatch {
  /** Kept with the messages of the request. */
  readonly trace?: string
  ended(verdict: Ingress['verdict']): void
}

/** Observes one request or message from now to its end. `parent` is the request that brings it. */
export function watchIngress(
  { clock, traces, observe }: { readonly clock: Clock; readonly traces: boolean; observe(observation: Observation): void },
  about: Pick<Ingress, 'channel' | 'signed'>,
  parent?: Trace,
): IngressWatch {
  const { channel, signed } = about
  if (!traces) return { ended: (verdict) => observe({ kind: 'ingress', channel, signed, verdict }) }
  const trace = newTrace(parent)
  const span = startSpan(clock, trace)
  return { trace: formatTraceContext(trace), ended: (verdict) => observe({ kind: 'ingress', ...about, verdict, span: span() }) }
}

export interface AttemptWatch {
  readonly trace: Trace
  ended(outcome: Outcome): void
}

/** Observes one attempt from now to its end. Its span is below the span that is stored with its row. */
export function watchAttempt(
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Pick<DeliveryTelemetry, 'observe'> },
  about: { readonly channel: string; readonly direction: 'inbound' | 'outbound'; readonly number: number },
  parent: string | undefined,
): AttemptWatch {
  const trace = newTrace(parent === undefined ? undefined : parseTraceContext(parent))
  const span = startSpan(clock, trace)
  return { trace, ended: (outcome) => telemetry.observe({ kind: 'delivery', ...about, outcome, span: span() }) }
}

function startSpan(clock: Clock, trace: Trace): () => { readonly trace: Trace; readonly startMs: number; readonly tookMs: number } {
  const [startMs, startedAtMs] = [clock.nowMs(), clock.monotonicMs()]
  return () => ({ trace, startMs, tookMs: clock.monotonicMs() - startedAtMs })
}
