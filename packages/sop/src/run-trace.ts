/**
 * Where a run and its steps stand in the trace of the event that started it. Their ids follow from the run's own, so that they
 * are the same after a restart and nothing has to be kept for them.
 */
import { parseTraceContext, type SopRun, sha256Hex, type Trace } from '@sluice/sdk'

const TRACE_ID_CHARS = 32
const SPAN_ID_CHARS = 16

/** The span of the whole run. */
export function runTrace({ id, event }: Pick<SopRun, 'id' | 'event'>): Trace {
  const ids = sha256Hex(id)
  const spanId = ids.slice(TRACE_ID_CHARS, TRACE_ID_CHARS + SPAN_ID_CHARS)
  const parent = event.trace === undefined ? undefined : parseTraceContext(event.trace)
  return parent ? { ...parent, spanId } : { traceId: ids.slice(0, TRACE_ID_CHARS), spanId, parentId: null }
}

/** The span of a step, below that of the run; its attempts share it. */
export function stepTrace(run: Pick<SopRun, 'id' | 'event'>, step: number): Trace {
  const { spanId: parentId, ...trace } = runTrace(run)
  return { ...trace, parentId, spanId: sha256Hex(`${run.id} ${step}`).slice(0, SPAN_ID_CHARS) }
}
