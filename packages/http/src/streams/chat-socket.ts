/** `/ws/chat`: a conversation over a WebSocket, in the same sessions as `POST /webhook`. */
import { randomUUID } from 'node:crypto'
import type { Agent } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import type { ClientId, Logger, SessionStore } from '@sluice/sdk'
import * as v from 'valibot'
import type { WebSocket } from 'ws'
import type { Endpoint, EndpointDoc } from '../endpoint.ts'
import type { Gate } from '../gate.ts'
import { checkSessionName, personOf, storedSession } from '../session-name.ts'
import { createChat } from './chat.ts'
import type { ChatFrame } from './chat-frames.ts'
import type { Connections } from './connections.ts'
import type { Heartbeat } from './heartbeat.ts'
import { socketProtocols } from './socket-server.ts'
import { upgradeSocket } from './socket-upgrade.ts'

/** A client that has more than this still to read is closed: a turn does not wait for its listener. */
const BUFFERED_BYTES_MAX = 4 * 1024 * 1024
const UNSUPPORTED_DATA = 1003
const TRY_AGAIN_LATER = 1013

const doc: EndpointDoc = {
  method: 'GET',
  path: '/ws/chat',
  summary: 'Talk to the agent over a WebSocket',
  auth: 'client',
  headers: socketProtocols,
  query: v.object({
    session_id: v.optional(v.pipe(v.string(), v.description('1 to 128 characters of A-Z a-z 0-9 . _ -; a new session if absent'))),
  }),
  answers: {
    101: {
      description:
        'A WebSocket; it sends `#/components/schemas/ChatFrame` (the first one is `session_start`) and takes `#/components/schemas/ChatClientFrame`',
    },
  },
}

export interface ChatSocketDeps {
  readonly agent: Agent
  readonly sessions: Pick<SessionStore, 'get'>
  readonly approvals: ApprovalRegistry
  readonly log: Logger
  readonly connections: Connections
  readonly heartbeat: Heartbeat
}

interface Conversation {
  readonly client: ClientId
  readonly caller: string
  readonly tokenHash: string | null
  /** As stored. */
  readonly session: string
  readonly start: ChatFrame
}

export function chatSocketEndpoint({ agent, sessions, approvals, log, connections, heartbeat }: ChatSocketDeps, gate: Gate): Endpoint {
  const open = (socket: WebSocket, { client, caller, tokenHash, session, start }: Conversation): (() => void) => {
    const send = (frame: ChatFrame): void => {
      socket.send(JSON.stringify(frame))
      if (socket.bufferedAmount > BUFFERED_BYTES_MAX) end(TRY_AGAIN_LATER, 'the client reads too slowly')
    }
    const end = (code: number, reason: string): void => {
      chat.close()
      socket.close(code, reason)
    }
    const chat = createChat({ agent, approvals, log, client, caller, session, send, mayAct: () => gate.isGood(tokenHash) })
    const stopBeating = heartbeat.watch(socket)
    socket.on('message', (data, isBinary) => {
      if (isBinary) end(UNSUPPORTED_DATA, 'messages are text')
      else chat.receive(data.toString())
    })
    socket.on('close', () => {
      chat.close()
      stopBeating()
    })
    send(start)
    return () => chat.close()
  }

  return {
    doc,
    serve: (c) =>
      upgradeSocket(c, { gate, connections, auth: doc.auth }, async ({ client, device, tokenHash }) => {
        const name = checkSessionName(c.req.query('session_id') ?? randomUUID(), 'session_id')
        const session = storedSession(device, name)
        const kept = await sessions.get(session)
        const start: ChatFrame = {
          type: 'session_start',
          session_id: name,
          resumed: kept !== undefined,
          message_count: kept?.messageCount ?? 0,
        }
        return (socket) => open(socket, { client, caller: personOf(device), tokenHash, session, start })
      }),
  }
}
