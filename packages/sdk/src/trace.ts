/** Where a piece of work stands in its trace, in the terms of W3C Trace Context. */
export interface Trace {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** 16 lower-case hex digits: the span that children name as their parent. */
  readonly spanId: string
  readonly parentId: string | null
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/

/** The trace a `traceparent` header names, continued by a span of ours; `undefined` if the header is not valid. */
export function parseTraceparent(header: string): { traceId: string; parentId: string } | undefined {
  const match = TRACEPARENT.exec(header)
  const [, traceId, parentId] = match ?? []
  if (!traceId || !parentId || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId }
}

export const formatTraceparent = (trace: Trace): string => `00-${trace.traceId}-${trace.spanId}-01`
