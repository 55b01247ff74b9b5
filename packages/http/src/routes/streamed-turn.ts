/** `POST /api/turns`: runs one turn and streams its parts. A caller that goes away aborts the turn, unless it has said that the turn stays. */

import type { Runtime, Snapshot } from '@sluice/runtime'
import { defineRoute, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import { checkSessionName, limitedClient, ownerOf, personOf, storedSession } from '../auth/identity.ts'
import { chosenAgent } from '../request/chosen-agent.ts'
import { frameOf, frameOfEnd, frameOfFailure } from '../streams/chat.ts'
import { ChatApprovals } from '../streams/chat-approvals.ts'
import { type ChatFrame, chatFrameSchema } from '../streams/chat-frames.ts'
import { jsonLines } from '../streams/json-lines.ts'

/** The longest message, and the JSON around it. */
const BODY_BYTES_MAX = 1_048_576 + 4096

const bodySchema = v.object({
  message: v.pipe(v.string(), v.trim(), v.minLength(1)),
  session_id: v.exactOptional(v.pipe(v.string(), v.description('A name as in `X-Session-Id`; without it, the turn has no history'))),
  agent: v.exactOptional(v.pipe(v.string(), v.description('The agent that answers; default: `main`. Only an operator may name one'))),
  ask: v.optional(
    v.pipe(
      v.boolean(),
      v.description('True: the caller is asked to approve tool calls, by `approval_request` lines, and answers at `/api/approvals`'),
    ),
    false,
  ),
  stays: v.optional(
    v.pipe(v.boolean(), v.description('True: the turn goes on when the caller goes away; the first line has its id')),
    false,
  ),
})

type Body = v.InferOutput<typeof bodySchema>

export const streamedTurnRoute = (runtime: Runtime, snapshot: Snapshot): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/turns',
    summary: 'Run one turn and stream its parts, one JSON object per line; the last one is `done`, `aborted` or `error`',
    auth: 'client',
    bodyBytesMax: BODY_BYTES_MAX,
    body: bodySchema,
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'The frames of `/ws/chat`, except for `session_start`', schema: chatFrameSchema } },
    handle(request) {
      const { device, body } = request
      // Refused before the answer begins, so that the caller gets a status.
      runtime.shares.checkWaiting(limitedClient(personOfRequest(request), request.role), Buffer.byteLength(body.message))
      const agent = chosenAgent(body.agent ?? null, 'agent', request, snapshot)
      const session = body.session_id === undefined ? null : storedSession(device, checkSessionName(body.session_id, 'session_id'), agent)
      return streamTurn(runtime, request, body, { agent, session })
    },
  })

function streamTurn(
  runtime: Runtime,
  { client, device, by, role, onControlSocket, signal: caller, trace }: Omit<RouteRequest, 'body' | 'query'>,
  { message, ask, stays }: Body,
  conversation: { readonly agent: string; readonly session: string | null },
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
  runtime.shares.check(limited, 'streams', runtime.shares.heldBy(limited, 'streams') + 1)
  return jsonLines(caller, run, () => runtime.shares.count(limited, 'streams').release)
}

const personOfRequest = ({ device, onControlSocket }: Pick<RouteRequest, 'device' | 'onControlSocket'>): string =>
  onControlSocket ? 'cli' : personOf(device)
