/** The position of a piece of work in its trace, in the terms of W3C Trace Context. */
export interface Trace {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** 16 lower-case hex digits: the span that children name as their parent. */
  readonly spanId: string
  readonly parentId: string | null
  /** The received `tracestate`, which is passed on unchanged. */
  readonly state?: string
}

/** A span of another program or of an earlier run, below which our spans continue. */
export interface TraceParent {
  readonly traceId: string
  readonly parentId: string
  readonly state?: string
}

/** Runs `work` within `trace`: its requests to other programs name that span as their parent. */
export type WithinTrace = <Result>(trace: Trace, work: () => Result) => Result

/** Accepts every version except `ff`. Further fields of later versions are ignored. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)/
const VERSION = '00'
const TRACEPARENT_CHARS = 55
/** The length that every participant must pass on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/

/** Parses a `traceparent` header with its `tracestate`; `undefined` when it is not valid. An invalid state is left out. */
export function parseTraceparent(header: string, state?: string | null): TraceParent | undefined {
  const [, version, traceId, parentId, more] = TRACEPARENT.exec(header) ?? []
  if (!traceId || !parentId || (version === VERSION && more !== '') || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, ...(state && TRACESTATE.test(state) && { state }) }
}

export const formatTraceparent = (trace: Trace): string => `00-${trace.traceId}-${trace.spanId}-01`

/** Formats a trace as one line, from which later work reads its parent. */
export const formatTraceContext = (trace: Trace): string =>
  trace.state === undefined ? formatTraceparent(trace) : `${formatTraceparent(trace)} ${trace.state}`

/** Parses the line that `formatTraceContext` wrote; `undefined` for any other text. */
export const parseTraceContext = (line: string): TraceParent | undefined =>
  line.startsWith(`${VERSION}-`) ? parseTraceparent(line.slice(0, TRACEPARENT_CHARS), line.slice(TRACEPARENT_CHARS + 1)) : undefined
