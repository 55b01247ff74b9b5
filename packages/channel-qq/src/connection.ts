/**
 * One connection to the gateway: identifies or resumes, sends heartbeats and takes events. See "WebSocket" at
 * https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/event-emit.html.
 */
import { pathSegment, storePatiently } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { FrameSocket } from '@sluice/kit/frame-socket'
import { AppError, type Deliver, type Host, type Inbound, type ListenContext } from '@sluice/sdk'
import { isSecretRefused, type QqApi } from './api.ts'
import { isOwnUrl } from './media.ts'
import { parseEvent } from './parse.ts'
import type { Session } from './session.ts'

const DISPATCH = 0
const HEARTBEAT = 1
const IDENTIFY = 2
const RESUME = 6
const RECONNECT = 7
const INVALID_SESSION = 9
const HELLO = 10

/** Messages of people and of groups that mention the bot, and presses of buttons. */
const MESSAGES = 1 << 25
const INTERACTIONS = 1 << 26
const HEARTBEAT_MS = 45_000
const READY_MS_MAX = 20_000
const CHECK_MS = 5000
/** QQ answers a heartbeat at once. */
const ANSWER_MS_MAX = 15_000
/** Longer than the time between two heartbeats. */
const SILENT_MS = 95_000
/** After 1000, the platform need not keep the session for the next connection. */
const KEEPS_SESSION = 4000

/** See "WebSocket error codes". After these, a new connection would be refused again. */
const FATAL_CLOSES: Readonly<Record<number, string>> = {
  4010: 'the shard is invalid',
  4011: 'the bot is in too many groups for one connection',
  4012: 'the version of the gateway is gone',
  4013: 'the events that are asked for do not exist',
  4014: 'the bot has no permission for the events that are asked for: apply for group and direct messages at https://q.qq.com',
  4914: 'the bot was taken offline, and works only in the sandbox: set sandbox = true',
  4915: 'the bot was banned',
}
/** After these, the session cannot be resumed. */
const isSessionLost = (code: number): boolean => code === 4006 || code === 4007 || (code >= 4900 && code <= 4913)

export class Connection {
  readonly #host: Host
  readonly #api: QqApi
  readonly #session: Session
  /** Settles when the events that have arrived are stored: events are stored in the order of arrival. */
  #stored: Promise<unknown> = Promise.resolve()

  constructor(host: Host, api: QqApi, session: Session) {
    this.#host = host
    this.#api = api
    this.#session = session
  }

  /** See `Channel.listen`. The next connection resumes the session of this one. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal } = context
    try {
      const url = await this.#gateway(signal)
      const authorization = await this.#api.authorization(signal)
      // Events that arrived over an earlier connection come before the number from which this one resumes.
      await this.#stored
      await new Run(this.#host, this.#api, this.#session, authorization, deliver, context, (task) => {
        const stored = this.#stored.then(task)
        this.#stored = stored.catch(() => undefined)
        return stored
      }).until(url)
    } catch (error) {
      if (signal.aborted) return
      throw isSecretRefused(error) ? new AppError('forbidden', (error as AppError).message) : error
    }
  }

  async #gateway(signal: AbortSignal): Promise<string> {
    const address = text((await this.#api.call('GET', '/gateway', undefined, signal)).url)
    const url = URL.parse(address.replace(/^ws/, 'http'))
    if (!url || !isOwnUrl(url.href, this.#api.url))
      throw new AppError('unavailable', 'qq named an address for the connection that is not its own')
    return address
  }
}

/** One connection from its opening to its end. */
class Run {
  readonly #host: Host
  readonly #api: QqApi
  readonly #session: Session
  readonly #authorization: string
  readonly #deliver: Deliver
  readonly #context: ListenContext
  readonly #inOrder: (task: () => Promise<void>) => Promise<void>
  /** Resolves when QQ asks for another connection, and rejects when this one is of no use. */
  readonly #over = Promise.withResolvers<void>()
  #isGreeted = false
  #isReady = false
  #heartbeatMs = HEARTBEAT_MS
  #lastBeatMs = Number.NEGATIVE_INFINITY
  /** Whether QQ has sent nothing since the last heartbeat. */
  #isUnanswered = false
  #openedMs = 0
  /** The number of the last event that arrived. */
  #received: number | null = null

  constructor(
    host: Host,
    api: QqApi,
    session: Session,
    authorization: string,
    deliver: Deliver,
    context: ListenContext,
    inOrder: (task: () => Promise<void>) => Promise<void>,
  ) {
    this.#host = host
    this.#api = api
    this.#session = session
    this.#authorization = authorization
    this.#deliver = deliver
    this.#context = context
    this.#inOrder = inOrder
  }

  async until(url: string): Promise<void> {
    const { clock } = this.#host
    this.#openedMs = clock.monotonicMs()
    this.#over.promise.catch(() => undefined)
    const socket = await FrameSocket.open(url, {
      platform: 'qq',
      clock,
      signal: this.#context.signal,
      onFrame: (frame, own) => this.#take(frame, own),
      onPing: (own) => this.#beat(own),
      pingMs: CHECK_MS,
      silentMs: SILENT_MS,
      closeCode: KEEPS_SESSION,
    })
    try {
      const end = await Promise.race([socket.ended, this.#over.promise])
      if (!end || this.#context.signal.aborted) return
      if (isSessionLost(end.code)) this.#session.end()
      const fatal = FATAL_CLOSES[end.code]
      if (fatal !== undefined) throw new AppError('forbidden', `qq refuses the connection (${end.code}): ${fatal}`)
      throw new AppError('unavailable', `The connection to qq was closed ${end.detail}`.trim())
    } finally {
      if (this.#isReady) this.#session.presence.left()
      socket.close()
    }
  }

  #take(frame: Members, socket: FrameSocket): Promise<void> | undefined {
    this.#isUnanswered = false
    switch (frame.op) {
      case HELLO:
        this.#greet(members(frame.d), socket)
        return undefined
      case RECONNECT:
        this.#over.resolve()
        return undefined
      case INVALID_SESSION:
        this.#session.end()
        this.#over.reject(new AppError('unavailable', 'qq did not accept the session; the next connection begins another'))
        return undefined
      case DISPATCH:
        return this.#dispatch(text(frame.t), frame)
      default:
        return undefined
    }
  }

  #greet({ heartbeat_interval }: Members, socket: FrameSocket): void {
    if (this.#isGreeted) return
    this.#isGreeted = true
    if (Number(heartbeat_interval) >= 1000) this.#heartbeatMs = Number(heartbeat_interval)
    const { state } = this.#session
    const token = this.#authorization
    if (state) {
      this.#received = state.seq
      socket.send({ op: RESUME, d: { token, session_id: state.id, seq: state.seq } })
    } else {
      const intents = MESSAGES | (this.#api.config.buttons ? INTERACTIONS : 0)
      socket.send({
        op: IDENTIFY,
        d: { token, intents, shard: [0, 1], properties: { $os: process.platform, $browser: 'sluice', $device: 'sluice' } },
      })
    }
    this.#lastBeatMs = this.#host.clock.monotonicMs()
  }

  #beat(socket: FrameSocket): void {
    const nowMs = this.#host.clock.monotonicMs()
    if (!this.#isReady && nowMs - this.#openedMs > READY_MS_MAX) {
      this.#session.end()
      this.#over.reject(new AppError('unavailable', 'qq did not accept the connection in time'))
      return
    }
    if (this.#isUnanswered && nowMs - this.#lastBeatMs > ANSWER_MS_MAX && !socket.isPaused) {
      socket.terminate('a heartbeat was not answered')
      return
    }
    // Checked every five seconds, so the last check before the interval ends is the time to act.
    if (nowMs - this.#lastBeatMs + CHECK_MS <= this.#heartbeatMs) return
    this.#lastBeatMs = nowMs
    this.#isUnanswered = true
    socket.send({ op: HEARTBEAT, d: this.#received })
  }

  #dispatch(type: string, frame: Members): Promise<void> | undefined {
    const seq = Number.isSafeInteger(frame.s) ? Number(frame.s) : undefined
    if (seq !== undefined) this.#received = seq
    if (type === 'READY') this.#ready(text(members(frame.d).session_id), seq ?? 0)
    if (type === 'RESUMED') this.#connected(false)
    const sessionId = this.#session.state?.id
    if (type === 'READY' || sessionId === undefined) return undefined
    const messages = parseEvent(type, frame.d, { account: this.#api.config.app_id })
    if (type !== 'RESUMED') this.#context.report.event()
    return this.#inOrder(async () => {
      for (const inbound of messages) if (!(await this.#store(inbound))) return
      if (seq !== undefined) this.#session.advance(sessionId, seq)
    })
  }

  /** Resolves to false if the channel stops before the message is stored. */
  async #store(inbound: Inbound): Promise<boolean> {
    const { signal } = this.#context
    const isStored = await storePatiently(this.#host, { channel: 'qq', inbound, deliver: this.#deliver, signal })
    // The person sees a spinner until then. A failure leaves only the spinner.
    if (isStored && inbound.pressed) {
      void this.#api.call('PUT', `/interactions/${pathSegment(inbound.id)}`, { code: 0 }, signal).catch(() => undefined)
    }
    return isStored
  }

  #ready(id: string, seq: number): void {
    this.#session.begin(id, seq)
    this.#connected(true)
  }

  #connected(hasMissed: boolean): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#context.report.connected()
    this.#session.presence.joined(this.#context.report, hasMissed)
  }
}
