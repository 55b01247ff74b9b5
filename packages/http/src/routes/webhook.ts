/** `POST /webhook`: one message, for the procedures that it triggers or else for one agent turn, once per idempotency key. */

import type { TurnRequest } from '@sluice/agent'
import { WEBHOOK_PATH } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { checkSessionName, limitedClient, ownerOf, storedSession } from '../auth/identity.ts'
import { bufferBody, requireJson } from '../middleware/body.ts'
import { idempotent } from '../middleware/idempotency.ts'
import { webhookAdmission } from '../middleware/webhook-admission.ts'
import { BODY_BYTES_MAX, parseJsonObject } from '../request/body.ts'
import { chosenAgent } from '../request/chosen-agent.ts'
import { basePathOf, type Endpoint, type EndpointDoc, type HttpContext, headersOf, type Step, traceOf } from '../request/context.ts'
import { prefersAsync } from '../request/prefer.ts'
import { jsonResponse } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { dispatchedResponse, dispatchedSchema, fireProcedures } from './triggers.ts'

const doc: EndpointDoc = {
  method: 'POST',
  path: WEBHOOK_PATH,
  summary: 'Run one message as an agent turn and answer with its reply',
  auth: 'client',
  headers: {
    'X-Webhook-Secret': 'The shared secret, if one is configured',
    'X-Idempotency-Key':
      '1 to 255 visible ASCII characters. A repeat within the time to live runs nothing and is answered with `X-Turn-Id`',
    'X-Session-Id': 'The session of the turn: 1 to 128 characters of A-Z a-z 0-9 . _ -',
    'X-Agent': 'The agent that answers, if it is not `main`: one of `[agents.<name>]`. Only an operator may name one',
    Prefer: '`respond-async`: store the turn and answer at once',
    traceparent: 'The trace that this turn continues (W3C Trace Context)',
  },
  body: v.object({ message: v.pipe(v.string(), v.minLength(1)) }),
  answers: {
    200: {
      description: 'The reply; `duplicate` for a repeated key; or the procedures that took the message',
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
      description: 'The turn is stored and queued; `GET status_url` answers its state',
      schema: v.object({ turn_id: v.string(), status_url: v.string() }),
    },
  },
}

/** The order of the steps is part of the contract: size, rate, token, secret, body, idempotency, procedures, turn. */
export const webhookEndpoint = (parts: AppParts): Endpoint => ({
  doc,
  steps: [
    ...webhookAdmission(parts),
    requireJson,
    bufferBody(BODY_BYTES_MAX, parts),
    parseMessage(parts),
    idempotent(parts),
    dispatchToProcedures(parts),
    runTurn(parts),
  ],
})

/** Sets `message`; a message, an agent or a session name that is not valid is refused before the idempotency key is claimed. */
const parseMessage =
  ({ snapshot }: AppParts): Step =>
  (c, next) => {
    const text = textOf(c.get('rawBody'))
    const agent = chosenAgent(headersOf(c).get('x-agent'), 'X-Agent', c.get('caller'), snapshot)
    c.set('message', { text, agent, session: sessionNameOf(c) })
    return next()
  }

const dispatchToProcedures =
  (parts: AppParts): Step =>
  async (c, next) => {
    const dispatched = await fireProcedures(c, WEBHOOK_PATH, { payload: Buffer.from(c.get('rawBody')).toString() }, parts)
    return dispatched.length > 0 ? dispatchedResponse(WEBHOOK_PATH, dispatched) : next()
  }

/** A client that goes away does not end its turn: its retry is a duplicate. */
const runTurn =
  ({ runtime }: AppParts): Step =>
  async (c) => {
    const { agent } = runtime
    const { client, device, person, role } = c.get('caller')
    const { text, agent: name, session } = c.get('message')
    const idempotency = c.get('idempotency')
    const turn: TurnRequest = {
      source: 'webhook',
      agent: name,
      session: session === null ? null : storedSession(device, session, name),
      text,
      client,
      owner: ownerOf(device),
      caller: person,
      limited: limitedClient(person, role),
      trace: traceOf(c),
      ...(idempotency && { idempotency }),
    }
    if (prefersAsync(headersOf(c))) {
      const id = await agent.accept(turn)
      return jsonResponse({ turn_id: id, status_url: `${basePathOf(c)}/api/turns/${id}` }, 202)
    }
    const { id, text: response, model } = await agent.run(turn)
    return jsonResponse({ response, model, session_id: session, turn_id: id })
  }

function textOf(body: Uint8Array): string {
  const { message } = parseJsonObject(body)
  if (typeof message !== 'string') throw new AppError('invalid_request', 'The body needs a text as \'message\': {"message": "…"}')
  if (message === '') throw new AppError('invalid_request', "'message' is empty")
  if (!message.isWellFormed()) throw new AppError('invalid_request', "'message' holds half of a surrogate pair")
  return message
}

function sessionNameOf(c: HttpContext): string | null {
  const name = headersOf(c).get('x-session-id')
  return name === null ? null : checkSessionName(name, 'X-Session-Id')
}
