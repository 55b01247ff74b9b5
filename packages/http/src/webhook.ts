/** `POST /webhook` (§2.2, §3, §4.1): one message, for the procedures it triggers or else as one turn, once per key. */

import type { TurnRequest } from '@sluice/agent'
import type { HeaderReader } from '@sluice/runtime'
import { WEBHOOK_PATH } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import type { Endpoint, EndpointDoc } from './endpoint.ts'
import { checkJsonType, parseJsonObject } from './json-body.ts'
import { jsonResponse } from './security-headers.ts'
import { checkSessionName, ownerOf, personOf, storedSession } from './session-name.ts'
import { createWebhookGuard, GUARD_HEADERS, type WebhookOptions } from './webhook-guard.ts'
import { dispatchedResponse, dispatchedSchema, fireSops } from './webhook-sops.ts'

const doc: EndpointDoc = {
  method: 'POST',
  path: WEBHOOK_PATH,
  summary: 'Run one message as an agent turn and answer with its reply',
  auth: 'client',
  headers: {
    ...GUARD_HEADERS,
    'X-Session-Id': 'The session the turn belongs to: 1 to 128 characters of A-Z a-z 0-9 . _ -',
    Prefer: '`respond-async`: keep the turn and answer at once',
    traceparent: 'The trace this turn continues (W3C Trace Context)',
  },
  body: v.object({ message: v.pipe(v.string(), v.minLength(1)) }),
  answers: {
    200: {
      description: 'The reply; for a repeated key, that it is a duplicate; or the procedures that took the message',
      schema: v.union([
        v.object({ response: v.string(), model: v.string(), session_id: v.nullable(v.string()), turn_id: v.string() }),
        v.object({
          status: v.literal('duplicate'),
          idempotent: v.literal(true),
          message: v.string(),
          state: v.optional(v.literal('in_flight')),
        }),
        dispatchedSchema,
      ]),
    },
    202: {
      description: 'Kept; it runs when its turn comes, and `GET status_url` tells how it stands',
      schema: v.object({ turn_id: v.string(), status_url: v.string() }),
    },
  },
}

/** Size, rate limit, bearer, secret, body, idempotency, procedures, turn: in this order, the first that refuses answers. */
export function webhookEndpoint(options: WebhookOptions): Endpoint {
  const { runtime } = options
  const guard = createWebhookGuard(options)

  /** A client that goes away ends no turn: its retry is a duplicate. */
  const runTurn = async (turn: TurnRequest, session: string | null, headers: HeaderReader): Promise<Response> => {
    if (prefersAsync(headers)) {
      const id = await runtime.agent.accept(turn)
      return jsonResponse({ turn_id: id, status_url: `/api/turns/${id}` }, 202)
    }
    const { id, text: response, model } = await runtime.agent.run(turn)
    return jsonResponse({ response, model, session_id: session, turn_id: id })
  }

  return {
    doc,
    async serve(c, scope) {
      const caller = await guard.admit(c)
      const { headers, client, device } = caller
      checkJsonType(headers)
      const body = await guard.readBody(c, caller)
      const text = messageIn(body)
      const session = sessionOf(headers)
      const claimed = await guard.claim(caller, WEBHOOK_PATH)
      if (claimed instanceof Response) return claimed
      const dispatched = await fireSops(runtime, { path: WEBHOOK_PATH, body, device, scope, ...claimed })
      if (dispatched.length > 0) return dispatchedResponse(WEBHOOK_PATH, dispatched)
      const stored = session === null ? null : storedSession(device, session)
      const turn: TurnRequest = {
        source: 'webhook',
        session: stored,
        text,
        client,
        owner: ownerOf(device),
        caller: personOf(device),
        trace: scope.trace,
        ...claimed,
      }
      return runTurn(turn, session, headers)
    },
  }
}

function messageIn(body: Uint8Array): string {
  const { message } = parseJsonObject(body)
  if (typeof message !== 'string') throw new AppError('invalid_request', 'The body needs a text as \'message\': {"message": "…"}')
  if (message === '') throw new AppError('invalid_request', "'message' is empty")
  if (!message.isWellFormed()) throw new AppError('invalid_request', "'message' holds half of a surrogate pair")
  return message
}

const sessionOf = (headers: HeaderReader): string | null => {
  const name = headers.get('x-session-id')
  return name === null ? null : checkSessionName(name, 'X-Session-Id')
}

const prefersAsync = (headers: HeaderReader): boolean =>
  headers
    .get('prefer')
    ?.split(',')
    .some((preference) => /^\s*respond-async\s*(?:;|$)/i.test(preference)) ?? false
