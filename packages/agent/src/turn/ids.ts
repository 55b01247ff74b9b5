/** Ids of turns, traces and spans. `randomUUID` uses a pool of random bytes, so that an id costs no system call. */
import { randomUUID } from 'node:crypto'
import type { Clock, Trace, TraceParent } from '@sluice/sdk'

/** The number of values of three hex digits. */
const IDS_PER_MS = 4096

/** Returns a version 7 UUID. Ids of different milliseconds sort by time. */
export const newTurnId = (nowMs = Date.now()): string => `${timeOf(nowMs)}-7${randomUUID().slice(15)}`

/** Makes ids that also sort within a millisecond, because interrupted turns of one session resume in the order of their ids. */
export function createTurnIds({ nowMs }: Pick<Clock, 'nowMs'>): () => string {
  let lastMs = 0
  let count = 0
  return () => {
    const thisMs = Math.trunc(nowMs())
    if (thisMs > lastMs) [lastMs, count] = [thisMs, 0]
    else if (++count === IDS_PER_MS) [lastMs, count] = [lastMs + 1, 0]
    return `${timeOf(lastMs)}-7${count.toString(16).padStart(3, '0')}${randomUUID().slice(18)}`
  }
}

function timeOf(ms: number): string {
  const time = Math.trunc(ms).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}`
}

/** Returns 16 random hex digits: the digits of a version 4 UUID that hold neither its version nor its variant. */
function newSpanId(): string {
  const random = randomUUID()
  return random.slice(0, 8) + random.slice(24, 32)
}

/** Returns a new trace, or a new span below a remote parent or below a span of ours. */
export function newTrace(parent?: Trace | TraceParent): Trace {
  if (!parent) return { traceId: newSpanId() + newSpanId(), spanId: newSpanId(), parentId: null }
  const { traceId, state } = parent
  const parentId = 'spanId' in parent ? parent.spanId : parent.parentId
  return state === undefined ? { traceId, spanId: newSpanId(), parentId } : { traceId, spanId: newSpanId(), parentId, state }
}
