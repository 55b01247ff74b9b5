/** Ids of turns, traces and spans. `randomUUID` draws from a pool of its own, so that none of them costs a system call. */
import { randomUUID } from 'node:crypto'
import type { Trace } from '@sluice/sdk'

/** A version 7 UUID: ids made in different milliseconds sort by time. */
export function newTurnId(nowMs = Date.now()): string {
  const time = Math.trunc(nowMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** 16 hex digits of a version 4 UUID that are all random: those around the version and the variant are left out. */
function newSpanId(): string {
  const random = randomUUID()
  return random.slice(0, 8) + random.slice(24, 32)
}

/** A new trace; a new span of the remote trace that `parseTraceparent` found; or a new span below one of our own. */
export function newTrace(parent?: Trace | { readonly traceId: string; readonly parentId: string }): Trace {
  if (!parent) return { traceId: newSpanId() + newSpanId(), spanId: newSpanId(), parentId: null }
  return { traceId: parent.traceId, spanId: newSpanId(), parentId: 'spanId' in parent ? parent.spanId : parent.parentId }
}
