/** Ids of turns, traces and spans. `randomUUID` draws from a pool of its own, so that none of them costs a system call. */
import { randomUUID } from 'node:crypto'
import type { Clock, Trace, TraceParent } from '@sluice/sdk'

/** As many as three hex digits can tell apart. */
const IDS_PER_MS = 4096

/** A version 7 UUID: ids made in different milliseconds sort by time. */
export const newTurnId = (nowMs = Date.now()): string => `${timeOf(nowMs)}-7${randomUUID().slice(15)}`

/** Such ids, which also sort as they were made within a millisecond: turns of one session are taken up in that order. */
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

/** 16 hex digits of a version 4 UUID that are all random: those around the version and the variant are left out. */
function newSpanId(): string {
  const random = randomUUID()
  return random.slice(0, 8) + random.slice(24, 32)
}

/** A new trace; a new span of the remote trace that `parseTraceparent` found; or a new span below one of our own. */
export function newTrace(parent?: Trace | TraceParent): Trace {
  if (!parent) return { traceId: newSpanId() + newSpanId(), spanId: newSpanId(), parentId: null }
  const { traceId, state } = parent
  const parentId = 'spanId' in parent ? parent.spanId : parent.parentId
  return state === undefined ? { traceId, spanId: newSpanId(), parentId } : { traceId, spanId: newSpanId(), parentId, state }
}
