/** Requests that trigger procedures: `POST /webhook`, and any unrouted path a trigger names (§2.4, §4.3). */

import type { Runtime } from '@sluice/runtime'
import { formatTraceContext, type IdempotencyKey, type SopDispatch } from '@sluice/sdk'
import * as v from 'valibot'
import type { Endpoint, RequestScope } from './endpoint.ts'
import { parseJson } from './json-body.ts'
import { jsonResponse } from './security-headers.ts'
import { personOf } from './session-name.ts'
import type { WebhookGuard } from './webhook-guard.ts'

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

interface WebhookEvent {
  readonly path: string
  readonly body: Uint8Array
  readonly device: string | null
  readonly scope: RequestScope
  readonly idempotency?: IdempotencyKey | undefined
}

/** Empty: no trigger matches, and nothing has happened. The key is given back if the event could not be kept. */
export async function fireSops(
  runtime: Runtime,
  { path, body, device, scope, idempotency }: WebhookEvent,
): Promise<readonly SopDispatch[]> {
  const sops = runtime.sops()
  if (!sops?.matches('webhook', path)) return []
  const event = {
    source: 'webhook',
    topic: path,
    payload: body.length === 0 ? null : Buffer.from(body).toString(),
    atMs: runtime.clock.nowMs(),
    by: personOf(device),
    ...(runtime.live().traces && { trace: formatTraceContext(scope.trace) }),
  } as const
  try {
    return await sops.fire(event, idempotency ? { idempotency } : {})
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

/** Serves a path that only a trigger names: any JSON, or nothing, is its payload. */
export const triggerPath =
  (runtime: Runtime, guard: WebhookGuard): Endpoint['serve'] =>
  async (c, scope) => {
    const { path } = c.req
    const caller = await guard.admit(c)
    const body = await guard.readBody(c, caller)
    if (body.length > 0) parseJson(body)
    const claimed = await guard.claim(caller, path)
    if (claimed instanceof Response) return claimed
    const { device } = caller
    const dispatched = await fireSops(runtime, { path, body, device, scope, ...claimed })
    // Every condition said no: that is an answer, too, and a repeat of the request would get the same.
    if (dispatched.length === 0 && claimed.idempotency) await runtime.store.idempotency.release(claimed.idempotency)
    return dispatchedResponse(path, dispatched)
  }
