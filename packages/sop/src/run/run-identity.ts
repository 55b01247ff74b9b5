/**
 * The names derived from a run: its session, its caller and its trace. They follow from the run alone, so that they are the same
 * after a restart and need no storage.
 */
import { agentKey, MAIN_AGENT, parseAgentKey, parseTraceContext, type SopRun, sha256Hex, type Trace } from '@sluice/sdk'

const SESSION_PREFIX = 'sop:'
const TRACE_ID_CHARS = 32
const SPAN_ID_CHARS = 16

/** Returns the agent that carries out the steps of a run. */
export const agentOfRun = ({ agent = MAIN_AGENT }: Pick<SopRun, 'agent'>): string => agent

/** Returns the session that all steps of a run share. */
export const sessionOf = (run: Pick<SopRun, 'id' | 'agent'>): string => agentKey(agentOfRun(run), SESSION_PREFIX + run.id)

/** Returns the run that a session belongs to; undefined for a session of anything else. */
export function runOfSession(session: string): string | undefined {
  const { key } = parseAgentKey(session)
  return key.startsWith(SESSION_PREFIX) ? key.slice(SESSION_PREFIX.length) : undefined
}

/** Returns the caller whose memories and devices the steps of a procedure use: always its own, whatever started the run. */
export const stepCaller = ({ sop }: SopRun): string => `sop:${sop}`

/** The standing of the steps of a procedure: an operator has accepted it. */
export const STEP_STANDING = 'operator'

/** Returns the span of the whole run, in the trace of the event that started it. */
export function runTrace({ id, event }: Pick<SopRun, 'id' | 'event'>): Trace {
  const ids = sha256Hex(id)
  const spanId = ids.slice(TRACE_ID_CHARS, TRACE_ID_CHARS + SPAN_ID_CHARS)
  const parent = event.trace === undefined ? undefined : parseTraceContext(event.trace)
  return parent ? { ...parent, spanId } : { traceId: ids.slice(0, TRACE_ID_CHARS), spanId, parentId: null }
}

/** Returns the span of a step, a child of the run's span. The attempts of a step share it. */
export function stepTrace(run: Pick<SopRun, 'id' | 'event'>, step: number): Trace {
  const { spanId: parentId, ...trace } = runTrace(run)
  return { ...trace, parentId, spanId: sha256Hex(`${run.id} ${step}`).slice(0, SPAN_ID_CHARS) }
}
