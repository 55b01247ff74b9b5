/** One observation as the span the exporter sends. */
import { createTraceState, type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { describeSpan } from './describe-span.ts'
import type { Spanned } from './spanned.ts'

const SCOPE = { name: 'sluice' }
const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

export function readableSpan(observation: Spanned, resource: Resource): ReadableSpan {
  const { name, kind, isError, attributes } = describeSpan(observation)
  const { trace, startMs, tookMs } = observation.span
  const { traceId, spanId, parentId, state } = trace
  const about = { traceId, traceFlags: TraceFlags.SAMPLED, ...(state !== undefined && { traceState: createTraceState(state) }) }
  const [start, took] = [amount(startMs), amount(tookMs)]
  return {
    name,
    kind: KINDS[kind],
    spanContext: () => ({ ...about, spanId }),
    // The parent of a request is in another program.
    ...(parentId !== null && { parentSpanContext: { ...about, spanId: parentId, isRemote: observation.kind === 'request' } }),
    startTime: hrTime(start),
    endTime: hrTime(start + took),
    duration: hrTime(took),
    ended: true,
    status: { code: isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** The latest moment an exported time can hold, in milliseconds. */
const MS_MAX = Number.MAX_SAFE_INTEGER / 1000

const amount = (ms: number): number => (ms > 0 ? Math.min(ms, MS_MAX) : 0)

/** Seconds, and the nanoseconds beyond. */
function hrTime(ms: number): HrTime {
  const secs = Math.trunc(ms / 1000)
  const nanos = Math.round((ms - secs * 1000) * 1e6)
  return nanos < 1e9 ? [secs, nanos] : [secs + 1, 0]
}
