/** Where a piece of work stands in its trace, in the terms of W3C Trace Context. */
export interface Trace {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** 16 lower-case hex digits: the span that children name as their parent. */
  readonly spanId: string
  readonly parentId: string | null
  /** What `tracestate` says of it, passed on as it came. */
  readonly state?: string
}

/** A span of somebody else, or of a time before this run: ours go on below it. */
export interface TraceParent {
  readonly traceId: string
  readonly parentId: string
  readonly state?: string
}

/** Runs `work` as what `trace` asks for: requests it makes to others name that span as their parent. */
export type WithinTrace = <Result>(trace: Trace, work: () => Result) => Result

/** Of any version but `ff`; those after `00` may have more fields, which are ignored. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)/
const VERSION = '00'
const TRACEPARENT_CHARS = 55
/** As long as every participant has to pass on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/

/** The trace a `traceparent` header names, with its `tracestate`; `undefined` if it is not valid. A state that is not is left out. */
export function parseTraceparent(header: string, state?: string | null): TraceParent | undefined {
  const [, version, traceId, parentId, more] = TRACEPARENT.exec(header) ?? []
  if (!traceId || !parentId || (version === VERSION && more !== '') || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, ...(state && TRACESTATE.test(state) && { state }) }
}

export const formatTraceparent = (trace: Trace): string => `00-${trace.traceId}-${trace.spanId}-01`

/** One line that a later piece of work finds its parent in. */
export const formatTraceContext = (trace: Trace): string =>
  trace.state === undefined ? formatTraceparent(trace) : `${formatTraceparent(trace)} ${trace.state}`

/** What `formatTraceContext` wrote; `undefined` for anything else. */
export const parseTraceContext = (line: string): TraceParent | undefined =>
  line.startsWith(`${VERSION}-`) ? parseTraceparent(line.slice(0, TRACEPARENT_CHARS), line.slice(TRACEPARENT_CHARS + 1)) : undefined
