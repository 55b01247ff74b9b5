/** An observation in the form that the exporter sends. */
import { createTraceState, type HrTime, type SpanContext, SpanKind, type SpanStatus, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import type { Trace } from '@sluice/sdk'
import { describeSpan, type SpanDescription, type SpanObservation } from './describe-span.ts'

const SCOPE = { name: 'sluice' }
const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}
const UNSET: SpanStatus = { code: SpanStatusCode.UNSET }
const FAILED: SpanStatus = { code: SpanStatusCode.ERROR }
const NONE: never[] = []

/** A class for speed, because thousands are created in a second. Constant values are shared. */
export class ExportedSpan implements ReadableSpan {
  readonly name: string
  readonly kind: SpanKind
  readonly parentSpanContext?: SpanContext
  readonly startTime: HrTime
  readonly endTime: HrTime
  readonly duration: HrTime
  readonly status: SpanStatus
  readonly attributes: SpanDescription['attributes']
  readonly resource: Resource
  readonly ended = true
  readonly instrumentationScope = SCOPE
  readonly links = NONE
  readonly events = NONE
  readonly droppedAttributesCount = 0
  readonly droppedEventsCount = 0
  readonly droppedLinksCount = 0
  readonly #context: SpanContext

  constructor(observation: SpanObservation, resource: Resource) {
    const { name, kind, isError, attributes } = describeSpan(observation)
    const { trace, startMs, tookMs } = observation.span
    const [start, took] = [amount(startMs), amount(tookMs)]
    this.name = name
    this.kind = KINDS[kind]
    // The parent of a request belongs to another program.
    if (trace.parentId !== null) this.parentSpanContext = contextOf(trace, trace.parentId, observation.kind === 'request')
    this.startTime = hrTime(start)
    this.endTime = hrTime(start + took)
    this.duration = hrTime(took)
    this.status = isError ? FAILED : UNSET
    this.attributes = attributes
    this.resource = resource
    this.#context = contextOf(trace, trace.spanId, false)
  }

  spanContext(): SpanContext {
    return this.#context
  }
}

const contextOf = ({ traceId, state }: Trace, spanId: string, isRemote: boolean): SpanContext =>
  state === undefined
    ? { traceId, spanId, isRemote, traceFlags: TraceFlags.SAMPLED }
    : { traceId, spanId, isRemote, traceFlags: TraceFlags.SAMPLED, traceState: createTraceState(state) }

/** The latest time that the exporter can encode, in milliseconds. */
const MS_MAX = Number.MAX_SAFE_INTEGER / 1000

const amount = (ms: number): number => (ms > 0 ? Math.min(ms, MS_MAX) : 0)

/** Splits milliseconds into whole seconds and nanoseconds. */
function hrTime(ms: number): HrTime {
  const secs = Math.trunc(ms / 1000)
  const nanos = Math.round((ms - secs * 1000) * 1e6)
  return nanos < 1e9 ? [secs, nanos] : [secs + 1, 0]
}
