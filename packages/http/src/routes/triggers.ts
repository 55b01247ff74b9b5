/** Requests that trigger procedures: `POST /webhook`, and every path without a route that a trigger names. */

import { formatTraceContext, type SopDispatch } from '@sluice/sdk'
import * as v from 'valibot'
import type { AppParts } from '../app-parts.ts'
import { BODY_BYTES_MAX, parseJson } from '../body.ts'
import { type HttpContext, type Step, traceOf } from '../context.ts'
import { bufferBody } from '../middleware/body.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { webhookAdmission } from '../middleware/webhook-admission.ts'
import { jsonResponse } from '../respond.ts'

export const dispatchedSchema = v.object({
  status: v.literal('accepted'),
  source: v.literal('webhook'),
  path: v.string(),
  results: v.array(
    v.variant('status', [
      v.object({ sop: v.string(), status: v.literal('started'), run_id: v.string() }),
      v.object({ sop: v.string(), status: v.literal('skipped'), reason: v.string() }),
    ]),
  ),
})

/**
 * The steps of a `POST` to a path without a route. A path that no trigger names is not found. A trigger path takes the
 * credentials, limits and keys of `POST /webhook`; its payload is any JSON, or nothing.
 */
export const triggerSteps = (parts: AppParts): Step[] => [
  matchTrigger(parts),
  ...webhookAdmission(parts),
  bufferBody(BODY_BYTES_MAX, parts.auth),
  checkPayload,
  idempotent(parts),
  dispatch(parts),
]

/** Which paths trigger procedures changes without a reload. A procedure that was just written may name the path: the request waits until it is loaded. */
const matchTrigger =
  ({ runtime }: AppParts): Step =>
  async (c, next) => {
    const { path } = c.req
    const procedures = runtime.sops()
    if (!procedures) return c.notFound()
    if (!procedures.matches('webhook', path)) {
      await procedures.loaded()
      if (!procedures.matches('webhook', path)) return c.notFound()
    }
    c.set('routeName', 'trigger')
    return next()
  }

const checkPayload: Step = (c, next) => {
  const body = c.get('rawBody')
  if (body.length > 0) parseJson(body)
  return next()
}

/** If the conditions of every trigger say no, that is an answer too: the key is released, and a repeat gets the same. */
const dispatch =
  (parts: AppParts): Step =>
  async (c) => {
    const { path } = c.req
    const dispatched = await fireProcedures(c, path, parts)
    const key = c.get('idempotency')
    if (dispatched.length === 0 && key) await parts.runtime.store.idempotency.release(key)
    return dispatchedResponse(path, dispatched)
  }

/**
 * Fires the triggers on a path with the body of the request. Returns nothing if no trigger matches; then nothing has happened.
 * The idempotency key is released if the event could not be kept.
 */
export async function fireProcedures(c: HttpContext, path: string, { runtime, snapshot }: AppParts): Promise<readonly SopDispatch[]> {
  const procedures = runtime.sops()
  if (!procedures?.matches('webhook', path)) return []
  const body = c.get('rawBody')
  const idempotency = c.get('idempotency')
  const event = {
    source: 'webhook',
    topic: path,
    payload: body.length === 0 ? null : Buffer.from(body).toString(),
    atMs: runtime.clock.nowMs(),
    by: c.get('caller').by,
    ...(snapshot.wantsTraces && { trace: formatTraceContext(traceOf(c)) }),
  } as const
  try {
    return await procedures.fire(event, idempotency ? { idempotency } : {})
  } catch (error) {
    if (idempotency) await runtime.store.idempotency.release(idempotency)
    throw error
  }
}

export const dispatchedResponse = (path: string, dispatched: readonly SopDispatch[]): Response =>
  jsonResponse({
    status: 'accepted',
    source: 'webhook',
    path,
    results: dispatched.map((result) =>
      result.status === 'started'
        ? { sop: result.sop, status: result.status, run_id: result.runId }
        : { sop: result.sop, status: result.status, reason: result.reason },
    ),
  } satisfies v.InferOutput<typeof dispatchedSchema>)
