/** The gateway of discord over WebSockets: sessions, resuming with missed events, heartbeats, and close codes. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'

/** The bot that may connect and the state that a session starts with. */
export interface DiscordGatewayOptions {
  token(): string
  readonly user: { readonly id: string; readonly username: string }
  readonly heartbeatMs: number
  /** The intents the bot may request, as a bit set. */
  readonly intents: number
  /** READY lists them as unavailable, and a GUILD_CREATE for each follows (https://discord.com/developers/docs/events/gateway-events#ready). */
  readonly guilds: readonly { readonly id: string }[]
}

/** The faults and states that a test sets. */
export interface DiscordGatewayControls {
  /** Closes every connection with this code. `forget`: the sessions cannot be resumed. */
  kick(code: number, options?: { readonly forget?: boolean }): void
  /** Asks every client to reconnect (op 7). */
  reconnect(): void
  /** Reports the session as invalid to every client (op 9). */
  invalidate(isResumable: boolean): void
  /** Stops or resumes the answers to heartbeats; connections stay open. */
  muteAcks(isMute: boolean): void
  /** Refuses new connections with 503, or accepts them again. */
  refuse(isRefused: boolean): void
  /** Sets how many sessions may still be started today. */
  setSessionsLeft(count: number): void
  /** The last `HAPPENED_MAX` events: `identify`, `resume`, `replayed <n>`, `invalid session`, `closed <code>`. */
  readonly happened: readonly string[]
  /** The number of connections with a session. */
  readonly connected: number
}

/** A running gateway. */
export interface DiscordGateway extends DiscordGatewayControls {
  readonly sessionsLeft: number
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Sends an event to every session. */
  dispatch(type: string, data: unknown): void
  close(): void
}

interface Session {
  readonly id: string
  readonly events: { readonly s: number; readonly t: string; readonly d: unknown }[]
  seq: number
  socket: WebSocket | undefined
}

const OP = { dispatch: 0, heartbeat: 1, identify: 2, resume: 6, reconnect: 7, invalid: 9, hello: 10, ack: 11 } as const
const CLOSE = {
  unknownOpcode: 4001,
  decodeError: 4002,
  notAuthenticated: 4003,
  authenticationFailed: 4004,
  alreadyAuthenticated: 4005,
  invalidVersion: 4012,
  invalidIntents: 4013,
  disallowedIntents: 4014,
} as const
const KNOWN_INTENTS = (1 << 26) - 1
/** The events one session keeps for resuming. */
const EVENTS_MAX = 1000
const SESSIONS_MAX = 100
const HAPPENED_MAX = 10_000
const SESSIONS_A_DAY = 1000

/** Creates a gateway for the `upgrade` requests of a server. */
export function createDiscordGateway({ token, user, heartbeatMs, intents, guilds }: DiscordGatewayOptions): DiscordGateway {
  const server = new WebSocketServer({ noServer: true })
  const sessions = new Map<string, Session>()
  const happened: string[] = []
  let left = SESSIONS_A_DAY
  let isMute = false
  let isRefused = false
  let lastSession = 0

  const note = (what: string): void => {
    happened.push(what)
    if (happened.length > HAPPENED_MAX) happened.shift()
  }
  const send = (socket: WebSocket | undefined, payload: object): void => socket?.send(JSON.stringify({ t: null, s: null, ...payload }))
  const emit = (session: Session, t: string, d: unknown): void => {
    session.seq += 1
    const event = { s: session.seq, t, d }
    session.events.push(event)
    if (session.events.length > EVENTS_MAX) session.events.shift()
    send(session.socket, { op: OP.dispatch, ...event })
  }
  const sessionOn = (socket: WebSocket): Session | undefined => [...sessions.values()].find((session) => session.socket === socket)

  /** Starts a session. Like `resume` and `receive`, it returns the code to close with, or `undefined` for a valid message. */
  const identify = (socket: WebSocket, d: Payload, resumeUrl: string): number | undefined => {
    note('identify')
    if (sessionOn(socket)) return CLOSE.alreadyAuthenticated
    if (d.token !== token()) return CLOSE.authenticationFailed
    if (typeof d.intents !== 'number' || (d.intents & ~KNOWN_INTENTS) !== 0) return CLOSE.invalidIntents
    if ((d.intents & ~intents) !== 0) return CLOSE.disallowedIntents
    if (typeof (d.properties as Payload | undefined)?.os !== 'string') return CLOSE.decodeError
    left -= 1
    const session: Session = { id: `session-${++lastSession}`, events: [], seq: 0, socket }
    sessions.set(session.id, session)
    if (sessions.size > SESSIONS_MAX) sessions.delete(sessions.keys().next().value ?? '')
    const ready = { v: 10, user: { ...user, bot: true }, guilds: guilds.map(({ id }) => ({ id, unavailable: true })), shard: d.shard }
    emit(session, 'READY', { ...ready, session_id: session.id, resume_gateway_url: resumeUrl })
    for (const guild of guilds) emit(session, 'GUILD_CREATE', guild)
    return undefined
  }

  const resume = (socket: WebSocket, d: Payload): number | undefined => {
    note('resume')
    if (d.token !== token()) return CLOSE.authenticationFailed
    const session = sessions.get(String(d.session_id))
    const seq = Number(d.seq)
    const oldest = session?.events[0]?.s ?? 0
    if (!session || seq > session.seq || seq < oldest - 1) {
      note('invalid session')
      send(socket, { op: OP.invalid, d: false })
      return undefined
    }
    session.socket?.close(1000)
    session.socket = socket
    const missed = session.events.filter(({ s }) => s > seq)
    note(`replayed ${missed.length}`)
    for (const event of missed) send(socket, { op: OP.dispatch, ...event })
    emit(session, 'RESUMED', {})
    return undefined
  }

  const receive = (socket: WebSocket, data: RawData, resumeUrl: string): number | undefined => {
    const { op, d } = parsed(data)
    const content = (typeof d === 'object' && d !== null ? d : {}) as Payload
    if (op === OP.identify) return identify(socket, content, resumeUrl)
    if (op === OP.resume) return resume(socket, content)
    if (op === OP.heartbeat) {
      if (!isMute) send(socket, { op: OP.ack })
      return undefined
    }
    if (op === undefined) return CLOSE.decodeError
    if (typeof op !== 'number' || op > OP.ack) return CLOSE.unknownOpcode
    return sessionOn(socket) ? undefined : CLOSE.notAuthenticated
  }

  const hello = (socket: WebSocket, query: URLSearchParams): number | undefined => {
    if (query.get('v') !== '10') return CLOSE.invalidVersion
    if (query.get('encoding') !== 'json' || query.has('compress')) return CLOSE.decodeError
    send(socket, { op: OP.hello, d: { heartbeat_interval: heartbeatMs } })
    return undefined
  }

  const closed = (socket: WebSocket, code: number): void => {
    note(`closed ${code}`)
    const session = sessionOn(socket)
    if (!session) return
    session.socket = undefined
    // A client that closes normally gives up its session.
    if (code === 1000 || code === 1001) sessions.delete(session.id)
  }

  return {
    happened,
    get connected() {
      return [...sessions.values()].filter(({ socket }) => socket !== undefined).length
    },
    get sessionsLeft() {
      return left
    },
    upgrade(request, socket, head) {
      const query = new URL(request.url ?? '/', 'http://fake').searchParams
      if (isRefused) return void socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
      server.handleUpgrade(request, socket, head, (connection) => {
        const resumeUrl = `ws://${request.headers.host}`
        connection.on('error', () => undefined)
        connection.on('close', (code) => closed(connection, code))
        connection.on('message', (data) => closeWith(connection, receive(connection, data, resumeUrl)))
        closeWith(connection, hello(connection, query))
      })
    },
    dispatch(type, data) {
      for (const session of sessions.values()) emit(session, type, data)
    },
    kick(code, { forget = false } = {}) {
      for (const client of server.clients) client.close(code)
      if (forget) sessions.clear()
      else for (const session of sessions.values()) session.socket = undefined
    },
    reconnect() {
      for (const client of server.clients) send(client, { op: OP.reconnect, d: null })
    },
    invalidate(isResumable) {
      if (!isResumable) sessions.clear()
      for (const client of server.clients) send(client, { op: OP.invalid, d: isResumable })
    },
    muteAcks(mute) {
      isMute = mute
    },
    refuse(refused) {
      isRefused = refused
    },
    setSessionsLeft(count) {
      left = count
    },
    close() {
      for (const client of server.clients) client.terminate()
      server.close()
    },
  }
}

type Payload = Readonly<Record<string, unknown>>

function parsed(data: RawData): Payload {
  try {
    const payload: unknown = JSON.parse(data.toString())
    return typeof payload === 'object' && payload !== null ? (payload as Payload) : {}
  } catch {
    return {}
  }
}

function closeWith(socket: WebSocket, code: number | undefined): void {
  if (code !== undefined) socket.close(code)
}
