/** `POST /webhook` (§2.2, §3, §4.1): one message, one turn, once per idempotency key. */
import type { TurnRequest } from '@sluice/agent'
import { AppError, equalDigests, type IdempotencyKey, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import type { Live, Runtime } from '../runtime.ts'
import type { Auth } from './auth.ts'
import type { HeaderReader } from './client-address.ts'
import type { Endpoint, EndpointDoc } from './endpoint.ts'
import type { Gate, HttpContext, Peer } from './gate.ts'
import { headersOf } from './headers-of.ts'
import { checkJsonType, parseJsonObject } from './json-body.ts'
import { limitRate } from './limit-rate.ts'
import type { RateLimiter } from './rate-limiter.ts'
import { BODY_BYTES_MAX, checkDeclaredSize, readBody } from './raw-body.ts'
import { JSON_HEADERS, jsonResponse } from './security-headers.ts'
import { checkSessionName, ownerOf, storedSession } from './session-name.ts'

const PATH = '/webhook'

const DONE = { status: 'duplicate', idempotent: true, message: 'Request already processed for this idempotency key' } as const
const IN_FLIGHT = { ...DONE, message: 'A request with this idempotency key is being processed', state: 'in_flight' } as const
const DUPLICATE = { done: JSON.stringify(DONE), in_flight: JSON.stringify(IN_FLIGHT) }

const doc: EndpointDoc = {
  method: 'POST',
  path: PATH,
  summary: 'Run one message as an agent turn and answer with its reply',
  auth: 'bearer',
  headers: {
    'X-Webhook-Secret': 'The shared secret, where one is configured',
    'X-Idempotency-Key': '1 to 255 visible ASCII characters; a repeat within the time to live runs nothing',
    'X-Session-Id': 'The session the turn belongs to: 1 to 128 characters of A-Z a-z 0-9 . _ -',
    Prefer: '`respond-async`: keep the turn and answer at once',
    traceparent: 'The trace this turn continues (W3C Trace Context)',
  },
  body: v.object({ message: v.pipe(v.string(), v.minLength(1)) }),
  answers: {
    200: {
      description: 'The reply; or, for a repeated key, that it is a duplicate',
      schema: v.union([
        v.object({ response: v.string(), model: v.string(), session_id: v.nullable(v.string()), turn_id: v.string() }),
        v.object({
          status: v.literal('duplicate'),
          idempotent: v.literal(true),
          message: v.string(),
          state: v.optional(v.literal('in_flight')),
        }),
      ]),
    },
    202: {
      description: 'Kept; it runs when its turn comes, and `GET status_url` tells how it stands',
      schema: v.object({ turn_id: v.string(), status_url: v.string() }),
    },
  },
}

export interface WebhookOptions {
  readonly runtime: Runtime
  readonly live: Live
  readonly gate: Gate
  readonly auth: Auth
  readonly limiter: RateLimiter
}

/** Size, rate limit, lockout, bearer, secret, body, idempotency, turn: in this order, the first that refuses answers. */
export function webhookEndpoint({ runtime, live, gate, auth, limiter }: WebhookOptions): Endpoint {
  const { config } = live
  const secret = createSecretCheck(config.webhook_secret?.reveal(), auth)
  const claimLimits = { ttlMs: config.idempotency_ttl_secs * 1000, keysMax: config.idempotency_max_keys }

  /** Where what an accepted message sets off is decided. A client that goes away ends no turn: its retry is a duplicate. */
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
      checkDeclaredSize(c, BODY_BYTES_MAX)
      const peer = gate.peer(c)
      const headers = headersOf(c)
      limitRate(limiter, peer.address, PATH, live)
      if (!peer.spared) auth.lockout.check(peer.address)
      const { client, device } = await gate.identify(c, peer)
      secret(headers, peer)
      const message = await readMessage(c)
      const session = sessionOf(headers)
      const idempotency = keyOf(headers, device)
      if (idempotency) {
        const claim = await runtime.store.idempotency.claim(idempotency, claimLimits)
        if (claim !== 'claimed') return new Response(DUPLICATE[claim], { headers: JSON_HEADERS })
      }
      const turn: TurnRequest = {
        source: 'webhook',
        session: session === null ? null : storedSession(device, session),
        text: message,
        client,
        owner: ownerOf(device),
        trace: scope.trace,
        ...(idempotency ? { idempotency } : {}),
      }
      return runTurn(turn, session, headers)
    },
  }
}

/** §5 rule 2: of the configured secret only its SHA-256 is kept. */
function createSecretCheck(secret: string | undefined, { lockout }: Auth): (headers: HeaderReader, peer: Peer) => void {
  if (!secret) return () => {}
  const digest = Buffer.from(sha256Hex(secret.trim()), 'hex')
  return (headers, { address, spared }) => {
    const given = headers.get('x-webhook-secret')
    if (given !== null && equalDigests(Buffer.from(sha256Hex(given.trim()), 'hex'), digest)) return
    if (given !== null && !spared) lockout.fail(address)
    throw new AppError('unauthorized', 'Unauthorized: the X-Webhook-Secret header is missing or wrong')
  }
}

async function readMessage(c: HttpContext): Promise<string> {
  checkJsonType(headersOf(c))
  const { message } = parseJsonObject(await readBody(c, BODY_BYTES_MAX))
  if (typeof message !== 'string') throw new AppError('invalid_request', 'The body needs a text as \'message\': {"message": "…"}')
  if (message === '') throw new AppError('invalid_request', "'message' is empty")
  if (!message.isWellFormed()) throw new AppError('invalid_request', "'message' holds half of a surrogate pair")
  return message
}

const sessionOf = (headers: HeaderReader): string | null => {
  const name = headers.get('x-session-id')
  return name === null ? null : checkSessionName(name, 'X-Session-Id')
}

function keyOf(headers: HeaderReader, device: string | null): IdempotencyKey | undefined {
  const key = headers.get('x-idempotency-key')?.trim()
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new AppError('invalid_request', 'X-Idempotency-Key has 1 to 255 visible ASCII characters')
  return { scope: `${device ?? 'open'} ${PATH}`, key }
}

const prefersAsync = (headers: HeaderReader): boolean =>
  headers
    .get('prefer')
    ?.split(',')
    .some((preference) => /^\s*respond-async\s*(?:;|$)/i.test(preference)) ?? false
