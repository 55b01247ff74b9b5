/**
 * `POST /api/turns`: runs one turn and streams its parts, or stores it and answers at once. A caller that goes away aborts a streamed turn, unless it
 * has said that the turn stays; a stored one goes on, and any number of callers follow it at `GET /api/turns/:id/stream`.
 */

import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route, type RouteRequest, type TurnRow } from '@sluice/sdk'
import * as v from 'valibot'
import { checkSessionName, limitedClient, ownerOf, personOfRequest, storedSession } from '../auth/identity.ts'
import { claimKey, keyIn, lostKey } from '../middleware/idempotency.ts'
import { chosenAgent } from '../request/chosen-agent.ts'
import { prefersAsync } from '../request/prefer.ts'
import { jsonResponse } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { frameOf, frameOfEnd, frameOfFailure } from '../streams/chat.ts'
import { ChatApprovals } from '../streams/chat-approvals.ts'
import { type ChatFrame, chatFrameSchema } from '../streams/chat-frames.ts'
import { jsonLines } from '../streams/json-lines.ts'
import { TurnStreams } from '../streams/turn-streams.ts'

/** The longest message, and the JSON around it. */
const BODY_BYTES_MAX = 1_048_576 + 4096

const bodySchema = v.object({
  message: v.pipe(v.string(), v.trim(), v.minLength(1)),
  session_id: v.exactOptional(v.pipe(v.string(), v.description('A name as in `X-Session-Id`; without it, the turn has no history'))),
  agent: v.exactOptional(v.pipe(v.string(), v.description('The agent that answers; default: `main`. Only an operator may name one'))),
  ask: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'True: the caller is asked to approve tool calls, by `approval_request` lines or, of a stored turn, by events, and answers at `/api/approvals`',
      ),
    ),
    false,
  ),
  stays: v.optional(
    v.pipe(v.boolean(), v.description('True: the turn goes on when the caller goes away; the first line has its id')),
    false,
  ),
})

type Body = v.InferOutput<typeof bodySchema>

type TurnParts = Pick<AppParts, 'runtime' | 'snapshot'>

interface Conversation {
  readonly agent: string
  readonly session: string | null
}

const acceptedSchema = v.object({ turn_id: v.string(), status_url: v.string() })

export const streamedTurnRoutes = (parts: TurnParts): Route[] => {
  const streams = new TurnStreams()
  return [turnRoute(parts, streams), followRoute(parts.runtime, streams)]
}

const turnRoute = (parts: TurnParts, streams: TurnStreams): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/turns',
    summary: 'Run one turn and stream its parts, one JSON object per line; the last one is `done`, `aborted` or `error`',
    auth: 'client',
    bodyBytesMax: BODY_BYTES_MAX,
    body: bodySchema,
    mediaType: 'application/x-ndjson',
    answers: {
      200: { description: 'The frames of `/ws/chat`, except for `session_start`', schema: chatFrameSchema },
      202: {
        description:
          'With `Prefer: respond-async`: the turn is stored, and goes on when the caller leaves; `GET /api/turns/:id/stream` follows it. A repeat of `X-Idempotency-Key`, 1 to 255 visible ASCII characters, is answered with the same turn: until `[gateway] idempotency_ttl_secs` after the turn is done, and no longer once it has failed or was aborted. Look for the turn before you repeat a message later',
        schema: acceptedSchema,
      },
    },
    async handle(request) {
      const { runtime, snapshot } = parts
      const { device, body, headers } = request
      // Refused before the answer begins, so that the caller gets a status.
      const limited = await runtime.people.current(limitedClient(personOfRequest(request), request.role))
      runtime.shares.checkWaiting(limited, Buffer.byteLength(body.message))
      const agent = chosenAgent(body.agent ?? null, 'agent', request, snapshot)
      const session = body.session_id === undefined ? null : storedSession(device, checkSessionName(body.session_id, 'session_id'), agent)
      const conversation = { agent, session }
      return prefersAsync(headers) ? acceptTurn(parts, streams, request, conversation) : streamTurn(runtime, request, body, conversation)
    },
  })

/** Stores a turn. A repeat of its key is answered with the same turn. */
async function acceptTurn(
  parts: TurnParts,
  streams: TurnStreams,
  request: RouteRequest<Body>,
  conversation: Conversation,
): Promise<Response> {
  const { client, device, role, onControlSocket, trace, headers, body } = request
  const { agent } = parts.runtime
  const key = keyIn(headers, device, '/api/turns')
  if (key) {
    const claimed = await claimKey(parts, key)
    if (claimed.claim !== 'claimed') return sameTurn(claimed.turnId)
  }
  const person = personOfRequest({ device, onControlSocket })
  const stream = streams.open(agent)
  const accepting = agent.accept({
    source: onControlSocket ? 'cli' : 'api',
    ...conversation,
    owner: ownerOf(device),
    caller: person,
    limited: limitedClient(person, role),
    text: body.message,
    client,
    trace,
    listen: stream.listen,
    ...(body.ask && { asksOwner: true }),
    ...(key && { idempotency: key }),
  })
  try {
    const id = await accepting
    stream.runs(id)
    return accepted(id)
  } catch (error) {
    const again = key && (await lostKey(parts, key, error))
    if (again && again.claim !== 'claimed') return sameTurn(again.turnId)
    throw error
  }
}

function sameTurn(id: string | undefined): Response {
  if (id === undefined) throw new AppError('conflict', 'A request with this idempotency key is being processed')
  return accepted(id)
}

const accepted = (id: string): Response => jsonResponse({ turn_id: id, status_url: `/api/turns/${id}` }, 202)

const followRoute = ({ agent, people, store, shares }: Runtime, streams: TurnStreams): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/turns/:id/stream',
    summary:
      'Follow a turn of this device: its parts so far and each later one, one JSON object per line; the last one is `done`, `aborted` or `error`. A turn that another node runs, or that was resumed, has no parts, and one on another node may end without the last line: ask again then',
    auth: 'client',
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'The frames of `/ws/chat`, except for `session_start`', schema: chatFrameSchema } },
    async handle({ device, role, onControlSocket, signal: caller, params: { id = '' } }) {
      const turn = agent.live().find((live) => live.id === id) ?? (await store.turns.get(id))
      if (!turn || turn.owner !== ownerOf(device)) throw new AppError('not_found', 'There is no such turn')
      const limited = await people.current(limitedClient(personOfRequest({ device, onControlSocket }), role))
      shares.check(limited, 'streams', shares.heldBy(limited, 'streams') + 1)
      return jsonLines<ChatFrame>(caller, async (send, signal) => {
        const held = shares.count(limited, 'streams')
        try {
          if (!(await streams.follow(id, agent, send, signal))) await endOrAbort(agent.ended(id), signal)
          const row = signal.aborted ? undefined : await store.turns.get(id)
          if (row && row.endedAtMs !== null) send(frameOfEnded(row))
        } finally {
          held.release()
        }
      })
    },
  })

function endOrAbort(ended: Promise<void>, signal: AbortSignal): Promise<void> {
  const left = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => left.resolve(), { once: true })
  return Promise.race([ended, left.promise])
}

/** The last frame of an ended turn. */
function frameOfEnded(turn: TurnRow): ChatFrame {
  const { id, status, error, response, model, finishReason, inputTokens, outputTokens, costUsd } = turn
  if (status === 'aborted') return { type: 'aborted', turn_id: id }
  if (error !== null || response === null)
    return {
      type: 'error',
      message: error?.message ?? 'The turn has no answer',
      code: 'AGENT_ERROR',
      ...(error && { error_code: error.code }),
    }
  const usage = { inputTokens, outputTokens, costUsd }
  return frameOfEnd({ id, text: response, model: model ?? '', finishReason: finishReason ?? 'stop', usage, replies: [] })
}

function streamTurn(
  runtime: Runtime,
  { client, device, by, role, onControlSocket, signal: caller, trace }: Omit<RouteRequest, 'body' | 'query'>,
  { message, ask, stays }: Body,
  conversation: Conversation,
): Response {
  const person = personOfRequest({ device, onControlSocket })
  const limited = limitedClient(person, role)
  const { approvals, log } = runtime
  const run = async (send: (frame: ChatFrame) => void, signal: AbortSignal): Promise<void> => {
    try {
      const turn = await runtime.agent.run({
        source: onControlSocket ? 'cli' : 'api',
        ...conversation,
        owner: ownerOf(device),
        caller: person,
        limited,
        text: message,
        client,
        trace,
        ...(stays ? { onId: (turn_id: string) => send({ type: 'turn_start', turn_id }) } : { signal }),
        listen: (part) => send(frameOf(part)),
        ...(ask && { approve: new ChatApprovals({ approvals, log, by, standing: limited.standing, send }).ask }),
      })
      send(frameOfEnd(turn))
    } catch (error) {
      send(frameOfFailure(error, runtime.log))
    }
  }
  // A turn has shares while it waits and runs. Its answer is a stream from then on, until it is read.
  const counted = runtime.people.principal(limited)
  runtime.shares.check(counted, 'streams', runtime.shares.heldBy(counted, 'streams') + 1)
  return jsonLines(caller, run, () => runtime.shares.count(counted, 'streams').release)
}
