/**
 * `GET /ws/chat`: a conversation over a WebSocket, in the same sessions as `POST /webhook`. A client that named its session may come back to
 * it, so that its turns go on when its connection ends.
 */
import { randomUUID } from 'node:crypto'
import type { Runtime } from '@sluice/runtime'
import * as v from 'valibot'
import type { WebSocket } from 'ws'
import { checkSessionName, storedSession } from '../auth/identity.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { chosenAgent } from '../request/chosen-agent.ts'
import type { Caller, Endpoint, EndpointDoc, HttpContext } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { Chat } from './chat.ts'
import type { ChatFrame } from './chat-frames.ts'
import { type OpenSocket, type OpenSockets, type SocketUser, socketCredential, socketProtocols, upgrade } from './websocket.ts'

/** A client with more unread bytes is disconnected: a turn does not wait for its reader. */
const BUFFERED_BYTES_MAX = 4 * 1024 * 1024
const UNSUPPORTED_DATA = 1003
const TRY_AGAIN_LATER = 1013
/** The daemon stops, or cannot check the token for now. */
const GOING_AWAY = 1001

const doc: EndpointDoc = {
  method: 'GET',
  path: '/ws/chat',
  summary: 'Talk to the agent over a WebSocket',
  auth: 'client',
  headers: socketProtocols,
  query: v.object({
    session_id: v.optional(
      v.pipe(
        v.string(),
        v.description(
          '1 to 128 characters of A-Z a-z 0-9 . _ -; its turns go on when the connection ends. Absent: a new session, whose turn ends with the connection',
        ),
      ),
    ),
    agent: v.optional(
      v.pipe(
        v.string(),
        v.description('The agent that answers, if it is not `main`: one of `[agents.<name>]`. Only an operator may name one'),
      ),
    ),
  }),
  answers: {
    101: {
      description:
        'A WebSocket; it sends `#/components/schemas/ChatFrame` (the first one is `session_start`) and takes `#/components/schemas/ChatClientFrame`',
    },
  },
}

/** The conversations of one daemon. */
export interface ChatSockets {
  readonly runtime: Runtime
  readonly open: OpenSockets
}

export const chatSocketEndpoint = (sockets: ChatSockets, parts: AppParts): Endpoint => ({
  doc,
  steps: [
    sameOrigin(parts.snapshot.gateway),
    authenticate('client', parts, socketCredential),
    upgrade(sockets.open, (c, caller) => prepareChat(sockets, parts, c, caller)),
  ],
})

/** Looks up the session before the socket opens, so that its first frame can be sent at once. */
async function prepareChat(sockets: ChatSockets, parts: AppParts, c: HttpContext, caller: Caller): Promise<OpenSocket> {
  const given = c.req.query('session_id')
  const name = checkSessionName(given ?? randomUUID(), 'session_id')
  const agent = chosenAgent(c.req.query('agent'), 'agent', caller, parts.snapshot)
  const session = storedSession(caller.device, name, agent)
  const kept = await sockets.runtime.store.sessions.get(session)
  const start: ChatFrame = {
    type: 'session_start',
    session_id: name,
    resumed: kept !== undefined,
    message_count: kept?.messageCount ?? 0,
  }
  return (socket) => openChat(sockets, parts, socket, caller, { session, start, isNamed: given !== undefined })
}

function openChat(
  { runtime }: ChatSockets,
  { auth }: AppParts,
  socket: WebSocket,
  { client, person, by, role, tokenHash }: Caller,
  { session, start, isNamed }: { readonly session: string; readonly start: ChatFrame; readonly isNamed: boolean },
): SocketUser {
  const send = (frame: ChatFrame): void => {
    socket.send(JSON.stringify(frame))
    if (socket.bufferedAmount > BUFFERED_BYTES_MAX) end(TRY_AGAIN_LATER, 'the client reads too slowly')
  }
  const leave = (): void => (isNamed ? chat.detach() : chat.close())
  const end = (code: number, reason: string): void => {
    leave()
    socket.close(code, reason)
  }
  const { agent, approvals, people, shares, log } = runtime
  const chat = new Chat({
    agent,
    approvals,
    shares,
    people,
    log,
    client,
    caller: person,
    role,
    by,
    session,
    send,
    mayAct: () => auth.isGood(tokenHash),
  })
  socket.on('message', (data, isBinary) => {
    if (isBinary) end(UNSUPPORTED_DATA, 'messages are text')
    else chat.receive(data.toString())
  })
  send(start)
  // A turn that a stop of the daemon interrupts goes on after the next start.
  return { stopInput: (code) => (code === GOING_AWAY ? leave() : chat.close()), closed: leave }
}
