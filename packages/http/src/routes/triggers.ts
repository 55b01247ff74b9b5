/** Requests that trigger procedures: `POST /webhook`, and every path without a route that a trigger names. */

import {
  AppError,
  answerProvenContact,
  answerUnprovenContact,
  authKey,
  formatTraceContext,
  handshakesOf,
  isAtLeast,
  isTestEvent,
  type SopDispatch,
  type SopEvent,
  type TriggerWebhook,
  type WebhookAuth,
} from '@sluice/sdk'
import * as v from 'valibot'
import { standingOf } from '../auth/identity.ts'
import { checkStillGood } from '../middleware/authenticate.ts'
import { checkDeclaredSize } from '../middleware/body.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { answerHandshake, eventHeaders, verifySender } from '../middleware/verify-sender.ts'
import { admitCaller, limitCaller } from '../middleware/webhook-admission.ts'
import { BODY_BYTES_MAX, readBody } from '../request/body.ts'
import { type HttpContext, headersOf, type Sender, type Step, type TriggerRequest, traceOf } from '../request/context.ts'
import { jsonResponse, withSecurityHeaders } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { payloadOf } from '../webhooks/trigger-payload.ts'

export const dispatchedSchema = v.object({
  status: v.literal('accepted'),
  source: v.literal('webhook'),
  path: v.string(),
  results: v.array(
    v.variant('status', [
      v.object({ sop: v.string(), status: v.literal('started'), run_id: v.string() }),
      v.object({ sop: v.string(), status: v.literal('waiting'), run_id: v.string(), reason: v.string() }),
      v.object({ sop: v.string(), status: v.literal('skipped'), reason: v.string() }),
    ]),
  ),
})

/**
 * The steps of a `POST` to a path without a route. A path that no trigger names is not found. A trigger without `auth` takes the
 * credentials, limits and keys of `POST /webhook` of a caller with its `role`; see `verifySender` for the others.
 */
export const triggerSteps = (parts: AppParts): Step[] => [
  matchTrigger(parts),
  answerContact(parts),
  limitSize,
  sameOrigin(parts.snapshot.gateway),
  ...[limitCaller(parts), ...admitCaller(parts), requireRole].map(unlessSigned),
  bufferTriggerBody(parts),
  verifySender(parts),
  readPayload,
  unlessSigned(idempotent(parts)),
  dispatch(parts),
]

/** The step of a `GET` or `HEAD` to a path that a trigger with an authentication of its own names: a service checks the address. */
export const firstContactStep = (parts: AppParts): Step => {
  const answer = answerContact(parts)
  return async (c, next) => {
    const procedures = parts.runtime.sops()
    if (!procedures?.matches('webhook', c.req.path)) return next()
    const trigger = triggerRequest(c, procedures.webhooks(c.req.path))
    if (!trigger.isSigned) return next()
    c.set('routeName', 'trigger')
    c.set('trigger', trigger)
    return answer(c, next)
  }
}

const authsOf = (webhooks: readonly TriggerWebhook[]): readonly WebhookAuth[] => webhooks.flatMap(({ auth }) => auth ?? [])

const answerContact = (parts: AppParts): Step => {
  const limit = limitCaller(parts)
  return async (c, next) => {
    const { isSigned, webhooks } = c.get('trigger')
    const contact = { method: c.req.method, url: new URL(c.req.url), headers: headersOf(c) }
    const response = isSigned ? answerUnprovenContact(contact, handshakesOf(authsOf(webhooks))) : undefined
    if (!response) return next()
    await limit(c, async () => {})
    return withSecurityHeaders(response)
  }
}

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
    c.set('trigger', triggerRequest(c, procedures.webhooks(path)))
    return next()
  }

/** If triggers of both kinds name the path, a bearer token decides. */
function triggerRequest(c: HttpContext, webhooks: readonly TriggerWebhook[]): TriggerRequest {
  const signed = webhooks.filter(({ auth }) => auth)
  const others = webhooks.filter(({ auth }) => !auth)
  const isSigned = signed.length > 0 && (others.length === 0 || !/^bearer /i.test(headersOf(c).get('authorization') ?? ''))
  return { webhooks: isSigned ? signed : others, isSigned }
}

const unlessSigned =
  (step: Step): Step =>
  (c, next) =>
    c.get('trigger').isSigned ? next() : step(c, next)

const requireRole: Step = (c, next) => {
  checkRole(c)
  return next()
}

/** Throws `forbidden` when every trigger on the path needs a higher role than that of the caller. */
function checkRole(c: HttpContext): void {
  if (c.get('trigger').webhooks.some(({ role }) => isAtLeast(standingOf(c.get('caller').role), role))) return
  throw new AppError('forbidden', 'Only an operator starts procedures by this path; `role = "client"` in the trigger opens it to clients')
}

const sizeOf = (c: HttpContext): number => Math.max(...c.get('trigger').webhooks.map(({ bodyBytesMax = BODY_BYTES_MAX }) => bodyBytesMax))

const limitSize: Step = (c, next) => {
  checkDeclaredSize(headersOf(c), sizeOf(c))
  return next()
}

/** Sets `rawBody`. The bytes count in the budget of the bodies of platforms until the answer. */
const bufferTriggerBody =
  ({ runtime, budget, auth }: AppParts): Step =>
  async (c, next) => {
    const { isSigned } = c.get('trigger')
    const room = budget.open(`trigger ${c.req.path}`, c.get('peer').address)
    try {
      c.set('rawBody', await readBody(c, sizeOf(c), room))
      room.complete()
      if (!isSigned) await checkStillGood(c.get('caller'), auth)
      // The procedures may have changed while the body arrived: the event is for the triggers that are loaded now.
      const trigger = triggerRequest(c, runtime.sops()?.webhooks(c.req.path) ?? [])
      if (trigger.webhooks.length === 0 || trigger.isSigned !== isSigned)
        throw new AppError('unavailable', 'The procedures on this path have just changed; send the request again')
      c.set('trigger', trigger)
      if (!isSigned) checkRole(c)
      await next()
    } finally {
      room.release()
    }
  }

const readPayload: Step = (c, next) => {
  c.set('payload', payloadOf(c.get('rawBody'), headersOf(c)))
  return next()
}

/** If the conditions of every trigger say no, that is an answer too: the key is released, and a repeat gets the same. */
const dispatch =
  (parts: AppParts): Step =>
  async (c) => {
    const { path } = c.req
    const sender = c.get('sender')
    const payload = c.get('payload')
    const contact = sender && (answerHandshake(sender, payload) ?? provenContact(c, sender))
    if (contact) return withSecurityHeaders(contact)
    const headers = eventHeaders(c)
    const dispatched = await fireProcedures(c, path, { payload, ...sender, headers }, parts)
    if (dispatched.length === 0 && sender?.verified.some(({ scheme }) => isTestEvent(scheme, { payload, headers })))
      return jsonResponse({ status: 'test' })
    const key = c.get('idempotency')
    if (dispatched.length === 0 && key) await parts.runtime.store.idempotency.release(key)
    return dispatchedResponse(path, dispatched)
  }

const provenContact = (c: HttpContext, sender: Sender): Response | undefined =>
  handshakesOf(sender.verified).has('challenge')
    ? answerProvenContact(c.get('payload'), headersOf(c), () => secretOf(c, sender))
    : undefined

const ZOOM_HEADER = 'x-zm-signature'

/** Returns the secret of Zoom, if the sender satisfies its authentication. No other secret signs what a sender asks for. */
const secretOf = (c: HttpContext, { verified }: Sender): string | undefined => {
  const isZoom = ({ scheme }: WebhookAuth): boolean => 'header' in scheme && scheme.header === ZOOM_HEADER
  const webhook = c
    .get('trigger')
    .webhooks.find(({ auth }) => auth && isZoom(auth) && verified.some((proven) => authKey(proven) === authKey(auth)))
  return webhook?.secrets[0]?.reveal().trim()
}

/** The part of an event that its request decides. `by` is the caller unless the request is signed. */
type RequestEvent = Pick<SopEvent, 'payload' | 'headers'> & Partial<Sender>

/**
 * Fires the triggers on a path. Returns nothing if no trigger matches; then nothing has happened. The idempotency key is released
 * if the event could not be kept.
 */
export async function fireProcedures(
  c: HttpContext,
  path: string,
  { verified, by, key, payload, headers = {} }: RequestEvent,
  { runtime, snapshot }: AppParts,
): Promise<readonly SopDispatch[]> {
  const caller = verified ? undefined : c.get('caller')
  const procedures = runtime.sops()
  if (!procedures?.matches('webhook', path)) return []
  const idempotency = c.get('idempotency')
  const event = {
    source: 'webhook',
    topic: path,
    payload,
    ...(Object.keys(headers).length > 0 && { headers }),
    atMs: runtime.clock.nowMs(),
    by: by ?? c.get('caller').by,
    ...(caller && { standing: standingOf(caller.role), starter: caller.person }),
    ...(key !== undefined && { key }),
    ...(snapshot.wantsTraces && { trace: formatTraceContext(traceOf(c)) }),
  } as const
  try {
    return await procedures.fire(event, { repeats: true, ...(idempotency && { idempotency }), ...(verified && { verified }) })
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
    results: dispatched.map((result) => {
      if (result.status === 'skipped') return { sop: result.sop, status: result.status, reason: result.reason }
      const { runId: run_id, ...rest } = result
      return { ...rest, run_id }
    }),
  } satisfies v.InferOutput<typeof dispatchedSchema>)
